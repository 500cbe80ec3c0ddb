package corpus

import (
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
	ReleaseScripts = read("release").scripts
	ExtendScripts  = read("extend").scripts
	AcquireScripts = read("acquire").scripts

	HashLock   = read("redisson").scripts["lock"]
	HashUnlock = read("redisson").scripts["unlock"]
	HashRenew  = read("redisson").scripts["renew"]
	HashFenced = read("redisson").scripts["fenced"]
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

// A theme is one file of scenarios/: scripts, and what is sent. In a command, $NAME is the
// script of this name, or its sum after EVALSHA. A scenario whose title has $ is one for each
// script of the file, which $ alone stands for. At the end of a line, ~ms, ~s or ~exact is
// the rule for the reply, if it is not the command's own: see comparisons.
type theme struct {
	scripts map[string]string
	stories []story
}

type story struct {
	title string
	lines []string
}

// marks are the rules that lines name.
var marks = map[string]comparison{"~ms": remaining, "~s": remainingSeconds, "~exact": Exact}

func read(name string) theme {
	text, err := texts.ReadFile("scenarios/" + name + ".txt")
	if err != nil {
		panic(err)
	}
	out, script := theme{scripts: map[string]string{}}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		part, isPart := strings.CutPrefix(line, "    ")
		switch name, isScript := strings.CutPrefix(line, "script "); {
		case line == "" || strings.HasPrefix(line, "#"):
		case isScript:
			script = name
			out.scripts[script] = ""
		case isPart && out.scripts[script] != "":
			out.scripts[script] += "\n" + part
		case isPart:
			out.scripts[script] = unquoted(part)
		case strings.HasPrefix(line, "== "):
			out.stories = append(out.stories, story{title: line[len("== "):]})
		default:
			last := &out.stories[len(out.stories)-1]
			last.lines = append(last.lines, line)
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

func (f theme) scenarios() (all []Scenario) {
	for _, each := range f.stories {
		if !strings.Contains(each.title, "$") {
			all = append(all, f.scenario(each, ""))
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(f.scripts)) {
			all = append(all, f.scenario(each, name))
		}
	}
	return all
}

// scenario makes a scenario of the story. The script in turn is the one that $ stands for.
func (f theme) scenario(s story, inTurn string) Scenario {
	out := Scenario{Name: strings.ReplaceAll(s.title, "$", inTurn)}
	for _, text := range s.lines {
		mark := text[strings.LastIndexByte(text, ' ')+1:]
		rule, isMarked := marks[mark]
		if isMarked {
			text = strings.TrimSuffix(text, " "+mark)
		}
		each := line(text)
		if !isMarked {
			rule = comparisons[commandOf(each.args)]
		}
		for i, arg := range each.args {
			name, isScript := strings.CutPrefix(arg, "$")
			if !isScript {
				continue
			}
			if name == "" {
				name = inTurn
			}
			script, known := f.scripts[name]
			if !known {
				panic(fmt.Sprintf("scenario %q has no script %q", s.title, name))
			}
			each.args[i] = script
			if strings.HasPrefix(each.args[0], "EVALSHA") {
				each.args[i] = rig.SHA1(script)
			}
		}
		out.steps = append(out.steps, each.by(rule))
	}
	return out
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
			e[command] = append(e[command], example)
		case line != "" && !strings.HasPrefix(line, "#"):
			if command = line; e[command] != nil {
				panic("two families have examples of " + command)
			}
		}
	}
}
