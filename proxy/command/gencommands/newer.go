package main

import "strings"

// newer returns the commands with keys that Redis 7.4 to 8.10 has and Valkey 9.1 has not,
// listed by hand from the files src/commands/*.json of Redis. A server that knows one of
// them replaces this description.
func newer() [][]any {
	commands := [][]any{
		// Redis 8.4: compare by value or digest.
		command("delex", -2, "fast write", keyAt(1)),
		command("digest", 2, "fast readonly", keyAt(1)),
		// Redis 8.8: bounded counters.
		command("increx", -2, "denyoom fast write", keyAt(1)),
		// Streams of Redis 8.2 to 8.8.
		command("xackdel", -6, "fast write", keyAt(1)),
		command("xdelex", -5, "fast write", keyAt(1)),
		command("xcfgset", -2, "fast write", keyAt(1)),
		command("xnack", -7, "fast write", keyAt(1)),
		command("xidmprecord", 5, "denyoom fast write", keyAt(1)),
		// Lists and sets of Redis 8.10.
		command("lmovem", -5, "denyoom write", keyAt(1), keyAt(2)),
		command("blmovem", -6, "blocking denyoom write", keyAt(1), keyAt(2)),
		command("sdiffcard", -3, "readonly", countedAt(1, 1)),
		command("sunioncard", -3, "readonly", countedAt(1, 1)),
		// Arrays of Redis 8.8.
		command("arcount", 2, "fast readonly", keyAt(1)),
		command("ardel", -3, "fast write", keyAt(1)),
		command("ardelrange", -4, "write", keyAt(1)),
		command("arget", 3, "fast readonly", keyAt(1)),
		command("argetrange", 4, "readonly", keyAt(1)),
		command("argrep", -6, "readonly", keyAt(1)),
		command("arinfo", -2, "readonly", keyAt(1)),
		command("arinsert", -3, "denyoom fast write", keyAt(1)),
		command("arlastitems", -3, "readonly", keyAt(1)),
		command("arlen", 2, "fast readonly", keyAt(1)),
		command("armget", -3, "fast readonly", keyAt(1)),
		command("armset", -4, "denyoom fast write", keyAt(1)),
		command("arnext", 2, "fast readonly", keyAt(1)),
		command("arop", -5, "readonly", keyAt(1)),
		command("arring", -4, "denyoom write", keyAt(1)),
		command("arscan", -4, "readonly", keyAt(1)),
		command("arseek", 3, "fast write", keyAt(1)),
		command("arset", -4, "denyoom fast write", keyAt(1)),
	}
	// Redis 8.10: hashes by a list of fields that the connection keeps.
	himport := command("himport", -2, "")
	himport[placeSubcommands] = []any{
		command("himport|discard", 3, ""),
		command("himport|discardall", 2, ""),
		command("himport|prepare", -4, "denyoom"),
		command("himport|set", -5, "denyoom write", keyAt(2)),
	}
	commands = append(commands, himport)
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

func command(name string, arity int, flags string, keys ...any) []any {
	words := []any{}
	for _, flag := range strings.Fields(flags) {
		words = append(words, flag)
	}
	return []any{name, arity, words, 0, 0, 0, []any{}, []any{}, append([]any{}, keys...), []any{}}
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
