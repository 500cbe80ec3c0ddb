// Package history judges the answers that clients of locks got. A Register is the
// resource that a lock protects: it detects two holders at once when they meet. Check
// examines all calls afterwards. It tells whether one perfect server with leases could
// have given these answers.
package history
