package route

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

// TestKeysAgreeWithRedis compares the keys with those that a server finds, for every
// command of the server that has keys: in proxytest.KeyExamples, with every
// small number of arguments, and with random arguments, the same ones in every run.
func TestKeysAgreeWithRedis(t *testing.T) {
	server := proxytest.StartRedis(t)
	live := liveCommands(t, server)
	words := strings.Fields("a b c d 0 1 2 3 4 -1 01 9999999999 STREAMS streams STORE storedist LIMIT BY GET KEYS AUTH AUTH2 GROUP COUNT")
	words = append(words, "", "STREAMS\x00", "9223372036854775808")
	random := rand.New(rand.NewPCG(3, 4))
	var questions [][][]byte
	for _, spec := range live {
		least := max(spec.Arity, -spec.Arity, 2) // COMMAND GETKEYS wants an argument
		most := least
		if spec.Arity < 0 {
			most += 5
		}
		for n := least; n <= most && spec.subcommands == nil && spec.Arity != 1; n++ {
			args := nameOf(spec)
			for len(args) < n {
				args = append(args, []byte{'a' + byte(len(args))})
			}
			questions = append(questions, args)
		}
		if len(spec.keys) == 0 && !spec.Is(specialKeys&^Conditions) { // this server finds no keys in EXEC
			continue
		}
		for range 40 {
			args := nameOf(spec)
			for range 1 + random.IntN(9) {
				args = append(args, []byte(words[random.IntN(len(words))]))
			}
			questions = append(questions, args)
		}
	}
	for _, example := range proxytest.KeyExamples {
		questions = append(questions, proxytest.Words(example))
	}
	compared := map[string]bool{}
	found := 0
	for i, answer := range getKeys(t, server, questions) {
		if string(questions[i][0]) == "sort" && sortIsAmbiguous(questions[i]) {
			continue
		}
		if name, any := compareKeys(t, questions[i], answer); any {
			compared[name] = true
			found++
		}
	}
	for _, spec := range live {
		if len(spec.keys) > 0 && !compared[spec.Name] {
			t.Errorf("%s has keys and no example", spec.Name)
		}
	}
	if found < len(questions)/3 {
		t.Errorf("only %d of %d commands had keys", found, len(questions))
	}
}

// sortIsAmbiguous tells whether the destination of a SORT is also the name of an
// option. COMMAND GETKEYS reads it as that option, too; SORT itself does not.
func sortIsAmbiguous(args [][]byte) bool {
	for i := range args[:len(args)-1] {
		if wire.IsWord(args[i], "STORE") && slices.ContainsFunc([]string{"STORE", "LIMIT", "BY", "GET"}, func(word string) bool { return wire.IsWord(args[i+1], word) }) {
			return true
		}
	}
	return false
}

func compareKeys(t *testing.T, args [][]byte, answer any) (name string, hasKeys bool) {
	t.Helper()
	spec := Builtin().Lookup(args)
	if spec == nil {
		t.Fatalf("%q: unknown to the table, known to the server", args)
	}
	indexes, exact := spec.AppendKeys(nil, args)
	if refused, isError := answer.(error); isError {
		text := refused.Error()
		switch {
		case strings.Contains(text, "no key arguments"):
			if len(indexes) > 0 {
				t.Errorf("%q: keys %d; the server finds none", args, indexes)
			}
		case strings.Contains(text, "Invalid number of arguments"):
			if exact && !arityMoved[spec.Name] {
				t.Errorf("%q: valid for the table, not for the server: %s", args, text)
			}
		case strings.Contains(text, "Invalid arguments"):
			// The server says this of wrong commands, in which the table may
			// still find a key. It also says it of PFMERGE with the destination
			// alone, which is a right command.
		default:
			t.Errorf("%q: %s", args, text)
		}
		return spec.Name, false
	}
	var want, got []string
	for _, key := range answer.([]any) {
		want = append(want, key.(string))
	}
	for _, i := range indexes {
		got = append(got, string(args[i]))
	}
	// If the count is no number, the server guesses, and the table finds all
	// arguments that could be keys.
	if exact && !slices.Equal(got, want) || !exact && !containsAll(got, want) {
		t.Errorf("%q: keys %q (exact: %t), the server says %q", args, got, exact, want)
	}
	return spec.Name, len(want) > 0
}

func containsAll(list, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(list, word) })
}

// arityMoved holds the commands that accept more arguments in newer servers.
var arityMoved = map[string]bool{"zrank": true, "zrevrank": true}

func nameOf(spec *Spec) [][]byte {
	return bytes.Split([]byte(spec.Name), []byte("|"))
}

// liveCommands returns all commands and subcommands of the server, sorted by name.
func liveCommands(t *testing.T, server *proxytest.Redis) []*Spec {
	t.Helper()
	table, err := (&Table{}).With(server.Commands(t))
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Collect(table.All())
	slices.SortFunc(all, func(a, b *Spec) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func getKeys(t *testing.T, server *proxytest.Redis, questions [][][]byte) []any {
	t.Helper()
	prefixed := make([][][]byte, len(questions))
	for i, question := range questions {
		prefixed[i] = append([][]byte{[]byte("COMMAND"), []byte("GETKEYS")}, question...)
	}
	return server.Answers(t, prefixed)
}
