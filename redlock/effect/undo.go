package effect

import (
	"crypto/rand"
	_ "embed"

	"redlock-proxy/redlock/resp"
)

var (
	// UndoScript is the script that AppendUndo and AppendReplace send.
	//go:embed undo.lua
	UndoScript string
	//go:embed watched.lua
	guardScript string
	// BoundScript stands before an examination that is Bounded.
	//go:embed bound.lua
	BoundScript string
)

// brake is a key that never exists. A bounded examination watches it, and BoundScript touches it. Each
// process has its own, so that no other one's EXEC is aborted.
var brake = "redlock-proxy:bound:" + rand.Text()

// AppendUndo appends the command that restores a key to its state before a run, if
// the key is still exactly as the run left it. The master answers 1 if it restored
// the key and 0 if not.
func AppendUndo(dst, key []byte, before, after Image) []byte {
	args := [][]byte{after.Dump, resp.Decimal(after.Expiry()), before.Dump, resp.Decimal(before.Expiry())}
	return resp.AppendEval(dst, UndoScript, [][]byte{key}, args...)
}

// AppendReplace appends the command that makes a key what became says, if the key is
// still as seen says, to the byte and with its expiry. The command does nothing once
// the master's clock is past until, in milliseconds.
func AppendReplace(dst, key []byte, became, seen Image, until int64) []byte {
	args := [][]byte{seen.Dump, resp.Decimal(seen.Expiry()), became.Dump, resp.Decimal(became.Expiry()), resp.Decimal(until)}
	return resp.AppendEval(dst, UndoScript, [][]byte{key}, args...)
}

// AppendGuard appends the command that tells whether all keys are still as images
// says. The master answers 1 if they are and 0 if not.
func AppendGuard(dst []byte, keys [][]byte, images []Image) []byte {
	args := make([][]byte, 0, 2*len(images))
	for _, i := range images {
		args = append(args, i.Dump, resp.Decimal(i.Expiry()))
	}
	return resp.AppendEval(dst, guardScript, keys, args...)
}
