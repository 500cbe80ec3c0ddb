// Package command knows the commands of Redis by name: how many arguments they
// take, which of them are keys, and what sets a few of them apart.
//
// A Table holds a Spec for each command and subcommand. The built-in one is
// what Redis 7.0 and Valkey 8.0 answer to COMMAND, and the commands of later
// releases (commands.json, which gencommands writes). Table.With adds what one
// server knows besides; it never changes what is known already, so no server
// decides where the keys of SET are.
//
// What COMMAND does not tell is in one table of Traits (traits.go): who needs a
// command may ask Spec.Is, and need not list names. An unknown command is a nil
// Spec, which has no traits.
//
// Tables and specs never change once they are made, so any number of goroutines
// may use them. Looking up, finding keys and asking for traits allocate nothing.
// The package imports proxy/wire and redlock/resp.
package command
