package integration

import (
	"testing"
	"time"

	"redlock-proxy/integration/child"
)

// patience bounds every wait of the suite. It is far beyond what a healthy
// run needs, so that only something broken reaches it.
const patience = time.Minute

// freePort returns a port nobody listens on, to which a server can come back.
func freePort(t testing.TB) int {
	t.Helper()
	port, err := child.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// waitFor polls until check returns nil, and fails the test with its last
// error when patience is over.
func waitFor(t testing.TB, what string, check func() error) {
	t.Helper()
	if err := eventually(check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// eventually checks again and again, and returns the last error if there is
// still one after patience.
func eventually(check func() error) error {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
	}
}
