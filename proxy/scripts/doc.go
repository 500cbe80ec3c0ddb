// Package scripts knows the texts of Lua scripts. A client loads a script before it is known whether it
// will run on lock keys, so a script is loaded on both planes.
//
// The Cache has the texts that any client has sent, and what each does with a key, as far as its
// words show (shape.go). That is advice for package unruled. The mutex of the Cache is held for a few lines, and
// while it calls the function for a forgotten text. Any number of goroutines may use it.
//
// Kill connects to each master, in a goroutine of its own, and waits for them, for two seconds
// at most. The package starts no other goroutine.
package scripts
