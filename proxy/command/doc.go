// Package command describes the commands of Redis: how many arguments each takes,
// which of its arguments are keys, and which need special treatment.
//
// A Table holds a Spec for each command and subcommand. The built-in table is in
// commands.txt, a row a command. Table.With adds the commands that only one server
// has (reply.go). It never changes a command that is known already, so no server
// decides where the keys of SET are.
//
// A reply to COMMAND does not say everything. The rest are Traits (traits.go), which
// are in the same rows. Callers ask Spec.Is instead of listing names of commands. An
// unknown command is a nil Spec, which has no traits.
//
// To add a command, write a row. A test compares the rows with what redis-server says.
//
// Tables and specs never change once they are made, so any number of goroutines
// may use them. Lookup, OnlyKey and Is allocate nothing. AppendKeys allocates only
// if dst is too short.
package command
