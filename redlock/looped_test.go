package redlock

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"redlock-proxy/redlock/loop"
)

// startLoop runs an event loop until the test has ended. It returns nil where the system has
// none. Then everything runs on goroutines.
func startLoop(t testing.TB) *loop.Loop {
	t.Helper()
	l, err := loop.New(slog.New(slog.DiscardHandler))
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return l
}
