package main

import "strings"

// newer returns commands of Redis 7.4 to 8.6 and Valkey 9 that have keys, listed by
// hand. A server that knows one of them replaces this description.
func newer() [][]any {
	commands := [][]any{
		// Redis 8.4: compare by value or digest.
		command("delex", -2, "fast write", keyAt(1)),
		command("digest", 2, "fast readonly", keyAt(1)),
		command("msetex", -4, "denyoom write", countedAt(1, 2)),
		// Valkey 9.
		command("delifeq", 3, "fast write", keyAt(1)),
		// Streams of Redis 8.2 and 8.6.
		command("xackdel", -6, "fast write", keyAt(1)),
		command("xdelex", -5, "fast write", keyAt(1)),
		command("xcfgset", -2, "fast write", keyAt(1)),
		// Hash fields with a TTL: Redis 7.4 and 8.0, Valkey 9.
		command("hexpire", -6, "denyoom fast write", keyAt(1)),
		command("hpexpire", -6, "denyoom fast write", keyAt(1)),
		command("hexpireat", -6, "denyoom fast write", keyAt(1)),
		command("hpexpireat", -6, "denyoom fast write", keyAt(1)),
		command("hexpiretime", -5, "fast readonly", keyAt(1)),
		command("hpexpiretime", -5, "fast readonly", keyAt(1)),
		command("httl", -5, "fast readonly", keyAt(1)),
		command("hpttl", -5, "fast readonly", keyAt(1)),
		command("hpersist", -5, "fast write", keyAt(1)),
		command("hgetdel", -5, "fast write", keyAt(1)),
		command("hgetex", -5, "fast write", keyAt(1)),
		command("hsetex", -6, "denyoom fast write", keyAt(1)),
	}
	// The vector sets of Redis 8.0 are a module. It checks its arguments itself, so
	// the arity here is the least possible.
	for _, name := range strings.Fields("vadd vrem vsetattr") {
		commands = append(commands, command(name, -2, "write", keyAt(1)))
	}
	for _, name := range strings.Fields("vcard vdim vemb vgetattr vinfo vismember vlinks vrandmember vrange vsim") {
		commands = append(commands, command(name, -2, "readonly", keyAt(1)))
	}
	return commands
}

func command(name string, arity int, flags string, spec []any) []any {
	words := []any{}
	for _, flag := range strings.Fields(flags) {
		words = append(words, flag)
	}
	return []any{name, arity, words, 0, 0, 0, []any{}, []any{}, []any{spec}, []any{}}
}

// keyAt returns a key specification with one key, the argument at index.
func keyAt(index int) []any {
	return []any{"flags", []any{}, "begin_search", at(index),
		"find_keys", []any{"type", "range", "spec", []any{"lastkey", 0, "keystep", 1, "limit", 0}}}
}

// countedAt returns a key specification in which the argument at index is the number
// of keys, and the first key follows it.
func countedAt(index, step int) []any {
	return []any{"flags", []any{}, "begin_search", at(index),
		"find_keys", []any{"type", "keynum", "spec", []any{"keynumidx", 0, "firstkey", 1, "keystep", step}}}
}

func at(index int) []any {
	return []any{"type", "index", "spec", []any{"index", index}}
}
