// Package command describes the commands of Redis: how many arguments each takes,
// which of its arguments are keys, and which need special treatment.
//
// A Table holds a Spec for each command and subcommand. The built-in table holds
// what Redis 7.0 and Valkey 9.1 reply to COMMAND, plus the commands of later
// releases. It is in commands.json, which gencommands writes. Table.With adds the
// commands that only one server has. It never changes a command that is known
// already, so no server decides where the keys of SET are.
//
// A reply to COMMAND does not say everything. The rest is in one table of Traits
// (traits.go). Callers ask Spec.Is instead of listing names of commands. An unknown
// command is a nil Spec, which has no traits.
//
// Tables and specs never change once they are made, so any number of goroutines
// may use them. Lookup, OnlyKey and Is allocate nothing. AppendKeys allocates only
// if dst is too short.
package command
