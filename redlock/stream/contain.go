package stream

import (
	"errors"
	"log/slog"
	"runtime/debug"
)

// A defect in one goroutine must not end the process, because other clients hold locks
// through it. It ends only the task of that goroutine, and the log reports it.

// errDefect is the error of a connection whose goroutine has panicked.
var errDefect = errors.New("a defect in the proxy; see the log")

// defectFound is the log message for a panic.
const defectFound = "a defect in the proxy was contained (please report)"

// LogDefect logs a recovered panic with the stack.
func LogDefect(log *slog.Logger, reason any) {
	log.Error(defectFound, "panic", reason, "stack", string(debug.Stack()))
}

// Contain runs do. It logs a panic in it and returns errDefect.
func Contain(log *slog.Logger, do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			LogDefect(log, reason)
			err = errDefect
		}
	}()
	return do()
}

// Contained is Contain for functions without a result.
func Contained(log *slog.Logger, do func()) {
	_ = Contain(log, func() error { do(); return nil })
}
