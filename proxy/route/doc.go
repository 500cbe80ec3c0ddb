// Package route decides which keys are locks, and so where a command goes: to
// the lock masters, to the upstream, to both in two halves, or nowhere.
//
//   - Rules say which keys are locks, in the order of the configuration. Keys and
//     channels that libraries derive from a lock's name are its companions, and go
//     where the lock goes (companions.go).
//   - A Router has the rules and the table of commands. Router.Route finds a
//     command's keys and its plane. It allocates nothing for a usual command.
//   - Where rules change, some keys change planes. A lock from before may still
//     live where such a key was, so it is held back for as long as that may be:
//     HeldBack and Moving tell until when (moves.go). Era counts such changes, so
//     that a transaction that began before one is told.
//
// Rules and routers never change once they are made: new rules make a new
// router, by WithRules. Any number of goroutines may use one. The slices of a
// Route may be shared by many routes, so nobody may write to them. The package
// imports proxy/command, proxy/wire, redlock/resp, and the name of the masters'
// marker from redlock.
package route
