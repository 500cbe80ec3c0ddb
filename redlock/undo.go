package redlock

import _ "embed"

//go:embed undo.lua
var undoText string

var undoScript = &script{undoText}

// undoable tells whether what a run did to a key may be taken back. A deletion
// was a release, and a moved expiry may since have been moved again by who
// holds the lock, so both stay.
func (e effect) undoable() bool { return e == keyCreated || e == keyChanged }

// appendUndo appends the one command that puts a key back to what it was
// before a run, if it still is exactly as the run left it then. It answers 1 if
// it did and 0 if not. If there is nothing that may be undone, nothing is
// appended.
func appendUndo(dst, key []byte, before, after image) []byte {
	if !change(before, after).undoable() {
		return dst
	}
	return appendRestore(dst, key, before, after)
}

// appendRestore is appendUndo also for what is not undoable otherwise: elements
// that were taken in vain (take.go).
func appendRestore(dst, key []byte, before, after image) []byte {
	args := [][]byte{after.dump, decimal(after.expiry())}
	if !before.absent() {
		args = append(args, before.dump, decimal(before.expiry()))
	}
	return undoScript.append(dst, [][]byte{key}, args...)
}
