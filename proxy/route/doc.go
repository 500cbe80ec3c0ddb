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
// Rules and routers never change once they are made. WithRules makes a new router.
// Any number of goroutines may use one. Many routes may share the slices of a
// Route, so callers must not write to them.
package route
