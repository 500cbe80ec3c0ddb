package master

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

type deafObserver struct{}

func (deafObserver) Queued(string, int)            {}
func (deafObserver) Standing(roster.MasterStatus)  {}
func (deafObserver) Forgot(string, roster.Amnesia) {}

// The roster compares the times of readings with others. They keep their monotonic part, so that
// no step of this machine's wall clock looks like time that has passed.
func TestTheTimeOfAReadingIsMonotonic(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := New(ctx, Options{Servers: []Server{{Name: "a"}}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Observer: deafObserver{}, Slept: func() time.Duration { return 0 }})
	s.Wait()
	sent := time.Now()
	d := s.At(0).database(0)
	d.Judge(stream.Check{Marker: []byte("$-1\r\n"), Time: []byte("*2\r\n$1\r\n5\r\n$1\r\n0\r\n"), Fits: true, Sent: sent, Received: sent})
	// The operator == compares both parts of a time. Equal does not.
	if got := d.latest.load().at; got != sent {
		t.Errorf("the check was sent at %v, and read at %v", sent, got)
	}
}
