package corpus

import (
	"slices"
	"testing"
)

// TestExamplesOnANewerServer: a server newer than the examples has commands that no example
// names. They are told, and only a command of Redis 7 without an example is missing.
func TestExamplesOnANewerServer(t *testing.T) {
	keySpec, none := []any{map[any]any{"flags": []any{"RW", "access"}}}, []any{}
	command := func(name string, arity int64, flags []any, specs, subcommands []any) any {
		return []any{name, arity, flags, int64(1), int64(1), int64(1), none, none, specs, subcommands}
	}
	since := func(version string) map[any]any { return map[any]any{"since": version} }
	commands := []any{
		command("get", 2, []any{"readonly"}, keySpec, none),
		command("ping", -1, none, none, none),
		command("hexpire", -6, []any{"write"}, keySpec, none),
		command("hgetex", -5, []any{"write"}, keySpec, none),
		command("json.get", -2, []any{"readonly", "module"}, keySpec, none),
		command("lcs", -3, []any{"readonly"}, keySpec, none),
		command("xinfo", -2, none, none, []any{command("xinfo|stream", -3, none, keySpec, none), command("xinfo|new", -3, none, keySpec, none)}),
		command("no-docs", -2, none, keySpec, none),
	}
	docs := map[any]any{
		"get": since("1.0.0"), "ping": since("1.0.0"), "hexpire": since("7.4.0"), "hgetex": since("8.0.0"), "json.get": since("1.0.0"), "lcs": since("7.0.0"),
		"xinfo": map[any]any{"since": "5.0.0", "subcommands": map[any]any{"xinfo|stream": since("5.0.0"), "xinfo|new": since("10.0.0")}},
	}
	keyed := keyedIn(commands, docs)
	if got := keyed["get"]; got != (keyedCommand{2, "1.0.0", false}) {
		t.Errorf("GET is %+v", got)
	}
	missing, newer := exampleLines{"get": {"K"}, "xinfo|stream": {"K"}}.lacks(keyed)
	if want := []string{"lcs", "no-docs"}; !slices.Equal(missing, want) {
		t.Errorf("missing are %q, want %q", missing, want)
	}
	if want := []string{"hexpire", "hgetex", "json.get", "xinfo|new"}; !slices.Equal(newer, want) {
		t.Errorf("newer are %q, want %q", newer, want)
	}
}
