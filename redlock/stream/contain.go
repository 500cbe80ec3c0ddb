package stream

import (
	"errors"
	"log/slog"
	"runtime/debug"
)

// A defect in one goroutine must not end the process, for other clients hold
// locks through it. It ends what the goroutine was about, and the log has it.

// errDefect is what a connection ends with whose goroutine has panicked.
var errDefect = errors.New("a defect in the proxy; see the log")

// defectFound is how the log words a panic.
const defectFound = "a defect in the proxy was contained"

// LogDefect logs a panic that was recovered, with the stack.
func LogDefect(log *slog.Logger, reason any) {
	log.Error(defectFound, "panic", reason, "stack", string(debug.Stack()))
}

// Contain runs do and returns a panic in it as errDefect.
func Contain(log *slog.Logger, do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			LogDefect(log, reason)
			err = errDefect
		}
	}()
	return do()
}

// Contained is Contain for what returns nothing.
func Contained(log *slog.Logger, do func()) {
	_ = Contain(log, func() error { do(); return nil })
}
