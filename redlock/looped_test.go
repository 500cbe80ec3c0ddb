package redlock

import (
	"log/slog"
	"testing"

	"redlock-proxy/redlock/loop"
)

// startLoop runs an event loop until the test has ended.
func startLoop(t testing.TB) *loop.Loop {
	t.Helper()
	l, end, err := loop.Start(slog.New(slog.DiscardHandler))
	t.Cleanup(end)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
