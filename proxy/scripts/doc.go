// Package scripts knows the texts of Lua scripts, and performs the SCRIPT command. A client
// loads a script before it is known whether it will run on lock keys, so a script is loaded
// on both planes.
//
// The Cache has the texts that any client has sent. Its mutex is held for a few lines, and
// while it calls the function for a forgotten text. Any number of goroutines may use it. The
// package starts none.
//
// The package imports command and wire.
package scripts
