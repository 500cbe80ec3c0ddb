// Package history judges what clients of locks got, for the simulation as for tests over real servers. A Register is
// the resource that a lock protects: it detects two holders at once when they meet. Conflicts finds the times for
// which two clients relied on one lock. Check examines all calls afterwards. It tells whether one perfect server with
// leases could have given these answers.
package history
