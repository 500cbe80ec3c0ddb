package main

import "strings"

// newer lists, by hand, keyed commands of Redis 7.4 to 8.6 and Valkey 9. A
// server that knows one of them overrides what stands here.
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
	// Vector sets of Redis 8.0 are a module's and check their arguments
	// themselves.
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

// keyAt: one key, that argument.
func keyAt(index int) []any {
	return []any{"flags", []any{}, "begin_search", at(index),
		"find_keys", []any{"type", "range", "spec", []any{"lastkey", 0, "keystep", 1, "limit", 0}}}
}

// countedAt: that argument is the number of keys, the first follows it.
func countedAt(index, step int) []any {
	return []any{"flags", []any{}, "begin_search", at(index),
		"find_keys", []any{"type", "keynum", "spec", []any{"keynumidx", 0, "firstkey", 1, "keystep", step}}}
}

func at(index int) []any {
	return []any{"type", "index", "spec", []any{"index", index}}
}
