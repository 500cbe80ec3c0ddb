package redlock

import (
	_ "embed"

	"redlock-proxy/redlock/resp"
)

var (
	//go:embed undo.lua
	undoText string
	//go:embed watched.lua
	watchedText string
)

// appendUndo appends the one command that puts a key back to what it was
// before a run, if it still is exactly as the run left it then. It answers 1 if
// it did and 0 if not.
func appendUndo(dst, key []byte, before, after image) []byte {
	args := [][]byte{after.dump, resp.Decimal(after.expiry())}
	if !before.absent() {
		args = append(args, before.dump, resp.Decimal(before.expiry()))
	}
	return resp.AppendEval(dst, undoText, [][]byte{key}, args...)
}

// appendReplace appends the command that makes a key what became says, if it still
// is as it was seen, to the byte and with its expiry, and the master's clock is not
// past until.
func appendReplace(dst, key []byte, became, seen image, until int64) []byte {
	args := [][]byte{seen.dump, resp.Decimal(seen.expiry()), became.dump, resp.Decimal(became.expiry()), resp.Decimal(until)}
	return resp.AppendEval(dst, undoText, [][]byte{key}, args...)
}

// appendGuard appends the command that tells whether keys still are as images says:
// it answers 1 if they are and 0 if not.
func appendGuard(dst []byte, keys [][]byte, images []image) []byte {
	args := make([][]byte, 0, 2*len(images))
	for _, i := range images {
		args = append(args, i.dump, resp.Decimal(i.expiry()))
	}
	return resp.AppendEval(dst, watchedText, keys, args...)
}
