package corpus

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/integration/rig"
)

//go:embed scenarios/*.txt examples/*.txt
var texts embed.FS

// ReleaseScripts, ExtendScripts and AcquireScripts are the scripts of these files, by name.
var (
	ReleaseScripts = read("release").Scripts
	ExtendScripts  = read("extend").Scripts
	AcquireScripts = read("acquire").Scripts

	HashLock   = read("redisson").Scripts["lock"]
	HashUnlock = read("redisson").Scripts["unlock"]
	HashRenew  = read("redisson").Scripts["renew"]
	HashFenced = read("redisson").Scripts["fenced"]
)

// All returns the scenarios of everything that lock libraries were seen to send.
func All() (all []Scenario) {
	files, err := texts.ReadDir("scenarios")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		all = append(all, read(strings.TrimSuffix(file.Name(), ".txt")).scenarios()...)
	}
	return all
}

// A Theme is one file: scripts, and stories of what is sent. A line "script NAME" has the lines of a
// script indented below it, and a line "== TITLE" begins a story. In a command, $NAME is the
// script of this name, or its sum after EVALSHA.
//
// In a file of scenarios/, a story whose title has $ is a scenario for each script of the file, which $ alone stands
// for. At the end of a line, ~ms, ~s or ~exact is the rule for the reply, if it is not the
// command's own: see comparisons.
type Theme struct {
	Scripts map[string]string
	Stories []Story
}

// A Story has lines, of which comments and empty ones are left out.
type Story struct {
	Title string
	Lines []string
}

// marks are the rules that lines name.
var marks = map[string]comparison{"~ms": remaining, "~s": remainingSeconds, "~exact": Exact}

func read(name string) Theme {
	text, err := texts.ReadFile("scenarios/" + name + ".txt")
	if err != nil {
		panic(err)
	}
	return Read(string(text))
}

// Read reads the text of a file.
func Read(text string) Theme {
	out, script := Theme{Scripts: map[string]string{}}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		part, isPart := strings.CutPrefix(line, "    ")
		switch name, isScript := strings.CutPrefix(line, "script "); {
		case line == "" || strings.HasPrefix(line, "#"):
		case isScript:
			script = name
			out.Scripts[script] = ""
		case isPart && out.Scripts[script] != "":
			out.Scripts[script] += "\n" + part
		case isPart:
			out.Scripts[script] = unquoted(part)
		case strings.HasPrefix(line, "== "):
			out.Stories = append(out.Stories, Story{Title: line[len("== "):]})
		default:
			last := &out.Stories[len(out.Stories)-1]
			last.Lines = append(last.Lines, line)
		}
	}
	return out
}

// unquoted returns the line of a script. One that has bytes other than a text's is in Go's quotes.
func unquoted(line string) string {
	if text, err := strconv.Unquote(line); err == nil {
		return text
	}
	return line
}

func (f Theme) scenarios() (all []Scenario) {
	for _, each := range f.Stories {
		if !strings.Contains(each.Title, "$") {
			all = append(all, f.scenario(each, ""))
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(f.Scripts)) {
			all = append(all, f.scenario(each, name))
		}
	}
	return all
}

// scenario makes a scenario of the story. The script in turn is the one that $ stands for.
func (f Theme) scenario(s Story, inTurn string) Scenario {
	out := Scenario{Name: strings.ReplaceAll(s.Title, "$", inTurn)}
	for _, text := range s.Lines {
		mark := text[strings.LastIndexByte(text, ' ')+1:]
		rule, isMarked := marks[mark]
		if isMarked {
			text = strings.TrimSuffix(text, " "+mark)
		}
		each := line(text)
		if !isMarked {
			rule = comparisons[commandOf(each.args)]
		}
		each.args = f.fill(each.args, inTurn)
		out.steps = append(out.steps, each.by(rule))
	}
	return out
}

// Words splits a command at spaces, and puts in the scripts that it names.
func (f Theme) Words(line string) []string { return f.fill(Words(line), "") }

func (f Theme) fill(words []string, inTurn string) []string {
	for i, word := range words {
		name, isScript := strings.CutPrefix(word, "$")
		if !isScript {
			continue
		}
		script, known := f.Scripts[cmp.Or(name, inTurn)]
		if !known {
			panic(fmt.Sprintf("there is no script %q", name))
		}
		words[i] = script
		if strings.HasPrefix(words[0], "EVALSHA") {
			words[i] = rig.SHA1(script)
		}
	}
	return words
}

// Words splits a text at spaces. A word in Go's double quotes may contain spaces and any byte.
func Words(text string) []string {
	var out []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var word string
		if quoted, err := strconv.QuotedPrefix(text); err == nil && quoted[0] == '"' {
			word, _ = strconv.Unquote(quoted)
			text = text[len(quoted):]
		} else {
			word, text, _ = strings.Cut(text, " ")
		}
		out = append(out, word)
	}
	return out
}

// exampleLines has for each command its examples: the words after the command's name. K, K2
// and K3 become lock keys of this example alone. An example runs once for every state of
// keyStates. Before it runs, K and K2 are put into that state. K3 never exists. A text with
// ";" is a small scenario of its own and starts without any key.
type exampleLines map[string][]string

// addFile reads a file of examples/.
func (e exampleLines) addFile(name string) {
	text, err := texts.ReadFile("examples/" + name)
	if err != nil {
		panic(err)
	}
	command := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		example, isExample := strings.CutPrefix(line, "    ")
		switch {
		case isExample:
			e[command] = append(e[command], withOddNumbers(example)...)
		case line != "" && !strings.HasPrefix(line, "#"):
			if command = line; e[command] != nil {
				panic("two families have examples of " + command)
			}
		}
	}
}

// oddNumbers are what may stand where Redis wants an integer. In an example, ODD is each of them.
// None is a TTL of more than a hundred years: the proxy shortens these.
var oddNumbers = []string{
	"1", "10", "0", "-1", "-0", "007", "+5", `" 5"`, `"5 "`, "1.5", "five", `""`, "-10",
	"100000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
	"9223372036854775000", "-9223372036854775", "-9223372036854776", "99999999999999999999", "123456789012345678901234567890",
}

// withOddNumbers returns the example, or one for each odd number if it says so.
func withOddNumbers(example string) (all []string) {
	if !strings.Contains(example, "ODD") {
		return []string{example}
	}
	for _, number := range oddNumbers {
		all = append(all, strings.ReplaceAll(example, "ODD", number))
	}
	return all
}
