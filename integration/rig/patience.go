package rig

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"redlock-proxy/integration/child"
)

// Patience bounds every wait of the suite. A healthy run needs far less, so only a defect
// reaches it.
const Patience = time.Minute

// FreePort returns a port on which nothing listens. A server can be restarted on it.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := child.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// WaitFor polls until check returns nil. After Patience it fails the test with check's
// last error.
func WaitFor(t testing.TB, what string, check func() error) {
	t.Helper()
	if err := Eventually(check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Eventually polls until check returns nil. After Patience it returns check's last error.
func Eventually(check func() error) error {
	deadline := time.Now().Add(Patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
	}
}

func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func Between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

type Silence struct{}

func (Silence) Printf(context.Context, string, ...any) {}
