package redlock

import (
	_ "embed"
	"time"

	"redlock-proxy/redlock/resp"
)

//go:embed undo.lua
var undoText string

var undoScript = &script{undoText}

// appendUndo appends the one command that puts a key back to what it was
// before a run, if it still is exactly as the run left it then. It answers 1 if
// it did and 0 if not.
func appendUndo(dst, key []byte, before, after image) []byte {
	args := [][]byte{after.dump, resp.Decimal(after.expiry())}
	if !before.absent() {
		args = append(args, before.dump, resp.Decimal(before.expiry()))
	}
	return undoScript.append(dst, [][]byte{key}, args...)
}

// appendReplace appends the command that makes a key what became says, if it still
// is as it was seen, to the byte and with its expiry, and the master's clock is not
// past until.
func appendReplace(dst, key []byte, became, seen image, until int64) []byte {
	args := [][]byte{seen.dump, resp.Decimal(seen.expiry()), became.dump, resp.Decimal(became.expiry()), resp.Decimal(until)}
	return undoScript.append(dst, [][]byte{key}, args...)
}

// putBack gives a master back what it deleted in vain, if nothing has come in
// its place since: an element that was popped, or the queue of those that wait.
// That is done behind the command that deleted it or not at all: on a later
// connection it may be what somebody else has taken elsewhere meanwhile.
func (s *stream) putBack(key []byte, before, after image, now time.Time) {
	m := sending{frames: appendUndo(nil, key, before, after)}
	s.send(call{replies: 1, asker: askerFunc(func([][]byte, standing, error) {})}, m, now)
}
