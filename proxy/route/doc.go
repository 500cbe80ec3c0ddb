// Package route decides which keys are locks, and so where a command goes: to
// the lock masters, to the upstream, to both in two halves, or nowhere.
//
//   - Rules say which keys are locks, in the order of the configuration. Libraries
//     derive the names of further keys and channels from a lock's name. These are
//     the lock's companions and go where the lock goes (companions.go).
//   - A Router holds the rules and the table of commands. Router.Route finds a
//     command's keys and its plane. It allocates nothing for the usual commands.
//   - When the rules change, some keys change planes. An old lock may still live on
//     the plane that such a key left. So the proxy refuses commands on the key for
//     as long as an old lock may live. HeldBack and Moving return that time
//     (moves.go). Generation counts these changes, so that EXEC can refuse a transaction
//     that began under older rules.
//
// # Commands
//
// A Table holds a Spec for each command and subcommand: how many arguments it takes, which of these are keys, and which
// need special treatment. The built-in table is in commands.txt, a row a command. Table.With adds the commands that only
// one server has (reply.go). It never changes a command that is known already, so no server decides where the keys of SET
// are.
//
// A reply to COMMAND does not say everything. The rest are Traits (traits.go), which are in the same rows. Callers ask
// Spec.Is instead of listing names of commands. An unknown command is a nil Spec, which has no traits.
//
// To add a command, write a row. A test compares the rows with what redis-server says.
//
// # What a caller may rely on
//
// Rules, routers, tables and specs never change once they are made. WithRules makes a new router.
// Any number of goroutines may use one. Many routes may share the slices of a
// Route, so callers must not write to them. Lookup and Is allocate nothing. AppendKeys allocates only if dst is
// too short.
package route
