package redlock

import (
	"errors"
	"log/slog"
	"testing"

	"redlock-proxy/redlock/loop"
)

// startLoop runs an event loop until the test has ended. It returns nil where the system has
// none. Then everything runs on goroutines.
func startLoop(t testing.TB) *loop.Loop {
	t.Helper()
	l, end, err := loop.Start(slog.New(slog.DiscardHandler))
	t.Cleanup(end)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	return l
}
