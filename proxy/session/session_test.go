package session

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// echo answers each command with its last argument, and knows no command.
type echo struct{ *Session }

func (e echo) Perform(cmd wire.Command) {
	e.Reply("+" + string(cmd.Args[len(cmd.Args)-1]) + "\r\n")
}

func (echo) Arrived()                                     {}
func (echo) Login(*config.Settings) *upstream.Login       { return &upstream.Login{} }
func (echo) Opened(*upstream.Login, bool)                 {}
func (echo) Rejected(wire.Error)                          {}
func (echo) Confirmed(wire.Confirmation)                  {}
func (echo) Flushed()                                     {}
func (echo) Swept() (mustLogIn, waits bool)               { return false, false }
func (echo) Revoked(was, now *config.Settings) (end bool) { return false }
func (echo) Close()                                       {}

// start serves a client over a pipe, whose far end it returns.
func start(t *testing.T, log io.Writer) (*Session, net.Conn) {
	t.Helper()
	meter, err := metrics.New(prometheus.NewRegistry(), metrics.Names{Build: []string{"", "", ""}})
	if err != nil {
		t.Fatal(err)
	}
	settings := config.NewActive(&config.Settings{Limits: config.DefaultLimits()})
	env := NewEnv(settings, meter, slog.New(slog.NewTextHandler(log, nil)))
	near, far := net.Pipe()
	s := New(t.Context(), env, 1, near, func(s *Session) Handler { return echo{s} })
	s.SetAuthenticated(true)
	ended := make(chan struct{})
	go func() {
		s.Serve()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = far.Close()
		<-ended
		if used := env.Budget.InUse(); used != 0 {
			t.Errorf("%d bytes are still charged", used)
		}
	})
	return s, far
}

func ask(t *testing.T, client net.Conn, request, want string) {
	t.Helper()
	_ = client.SetDeadline(time.Now().Add(time.Minute))
	go func() { _, _ = io.WriteString(client, request) }()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(client, got); err != nil || string(got) != want {
		t.Fatalf("got %.100q (%v), want %.100q", got, err, want)
	}
}

// A handler needs nothing but the exported surface to answer in order.
func TestPipelineIsAnsweredInOrder(t *testing.T) {
	_, client := start(t, io.Discard)
	ask(t, client, "A 1\r\n*2\r\n$1\r\nB\r\n$1\r\n2\r\nC 3\r\n", "+1\r\n+2\r\n+3\r\n")
}

// Buffers of clients that fell silent are taken back.
func TestSilentClientKeepsNoLargeBuffer(t *testing.T) {
	s, client := start(t, io.Discard)
	text := strings.Repeat("x", 20_000)
	ask(t, client, "*2\r\n$4\r\nECHO\r\n$20000\r\n"+text+"\r\n", "+"+text+"\r\n")
	if !s.sock.HasLargeBuffer() {
		t.Fatal("this test wants a large buffer to begin with")
	}
	s.Env.Clock.Advance(s.Env.Clock.Now() + int64(time.Minute))
	s.Inspect(&config.Limits{})
	for deadline := time.Now().Add(time.Minute); s.sock.HasLargeBuffer(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the buffer is still large")
		}
	}
	ask(t, client, "GET k\r\n", "+k\r\n")
}

// Each reason is logged once, and none hides another.
func TestReasonsAreToldOnce(t *testing.T) {
	var log bytes.Buffer
	near, _ := net.Pipe()
	meter, _ := metrics.New(prometheus.NewRegistry(), metrics.Names{Build: []string{"", "", ""}})
	env := NewEnv(config.NewActive(&config.Settings{}), meter, slog.New(slog.NewTextHandler(&log, nil)))
	s := New(context.Background(), env, 1, near, func(s *Session) Handler { return echo{s} })
	s.End(Draining)
	if s.Ending() || !s.HasEnded(Draining) {
		t.Error("a session that drains performs what it has read")
	}
	s.End(MissedMessages, slog.String("reason", "made for the test"))
	s.End(MissedMessages)
	s.Panicked("made for the test")
	s.End(CutOff)
	if !s.Ending() || s.Context().Err() == nil {
		t.Error("a session that is cut off still performs commands")
	}
	for _, want := range []string{endings[MissedMessages].text, endings[Panicked].text} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", want, n, log.String())
		}
	}
}

// A client that leaves may end its upstream connection first. That is still the client's
// doing, unless the proxy has a reason of its own.
func TestWhoseEndItIs(t *testing.T) {
	leaves, ends := (*Session).ClientLeft, func(s *Session) { minded{s}.ClientEnded() }
	for _, row := range []struct {
		name string
		left func(*Session) // nil: the client has not left
		why  []Reason
		want bool
	}{
		{"it closed its connection", nil, []Reason{ClientGone}, true},
		{"QUIT", nil, []Reason{Quit}, true},
		{"the upstream ends", nil, []Reason{UpstreamGone}, false},
		{"the upstream ends after a reset", leaves, []Reason{UpstreamGone}, true},
		{"the upstream ends after EOF", ends, []Reason{UpstreamGone}, true},
		{"both are noticed", ends, []Reason{UpstreamGone, ClientGone}, true},
		{"the process ends, too", ends, []Reason{UpstreamGone, Draining}, false},
		{"its lock was lost", leaves, []Reason{LeaseLost}, false},
		{"no end yet", leaves, nil, false},
	} {
		s, client := start(t, io.Discard)
		ask(t, client, "GET k\r\n", "+k\r\n")
		if row.left != nil {
			row.left(s)
		}
		for _, why := range row.why {
			s.End(why)
		}
		if got := s.ClientLeaves(); got != row.want {
			t.Errorf("%s: the client's end is %v, want %v", row.name, got, row.want)
		}
	}
}
