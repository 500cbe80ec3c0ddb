package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

// An echo runs a session as package handler does. It answers each command with its last argument, and knows
// no command but BUSY and WHERE.
type echo struct {
	*Session
	perform func(wire.Command) // nil: answer
	closed  func()             // is called when it has ended
}

func (e *echo) answer(cmd wire.Command) {
	if string(cmd.Args[0]) == "BUSY" {
		e.Busy(func() { time.Sleep(time.Microsecond) })
	}
	if string(cmd.Args[0]) == "WHERE" {
		e.Reply(map[bool]string{true: "+loop\r\n", false: "+away\r\n"}[e.OnLoop()])
		return
	}
	e.Reply("+" + string(cmd.Args[len(cmd.Args)-1]) + "\r\n")
}

func (e *echo) serve(task *loop.Task) (rests bool) {
	defer func() {
		if reason := recover(); reason != nil {
			e.Panicked(reason)
		}
		if !rests {
			e.Release()
			e.closed()
		}
	}()
	if !e.Begin(task) {
		return false
	}
	for more := true; more && !e.Ending(); {
		for cmd, ok := e.Next(); ok; cmd, ok = e.Next() {
			if e.perform != nil {
				e.perform(cmd)
			} else {
				e.answer(cmd)
			}
		}
		if more, rests = e.ReadMore(); rests {
			return true
		}
	}
	e.Finish()
	return false
}

// start serves a client over TCP.
func start(t *testing.T, log io.Writer) (*echo, net.Conn) {
	t.Helper()
	far, near := proxytest.Pair(t)
	return serve(t, log, near, far), far
}

func serve(t *testing.T, log io.Writer, near, far net.Conn) *echo {
	t.Helper()
	meter, err := events.NewMetrics(prometheus.NewRegistry(), events.Names{Build: []string{"", "", ""}})
	if err != nil {
		t.Fatal(err)
	}
	settings := config.NewActive(&config.Settings{Config: config.Demo()})
	env := NewEnv(settings, meter, slog.New(slog.NewTextHandler(log, nil)), proxytest.Loop(t))
	ended := make(chan struct{})
	e := &echo{Session: New(t.Context(), env, 1, near), closed: func() { close(ended) }}
	e.SetAuthenticated(true)
	env.Loop.Go(e.serve)
	t.Cleanup(func() {
		_ = far.Close()
		<-ended
		if used := env.Budget.InUse(); used != 0 {
			t.Errorf("%d bytes are still charged", used)
		}
	})
	return e
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

// A panic while the session writes gives the writing side back, for who waits for it.
func TestAPanicWhileWritingGivesTheWriterBack(t *testing.T) {
	s, client := start(t, io.Discard)
	s.Env.Loop.Do(func() {
		s.perform = func(wire.Command) { s.FlushWith(func([]byte) []byte { panic("made for the test") }) }
	})
	_, _ = io.WriteString(client, "A 1\r\n")
	_ = client.SetDeadline(time.Now().Add(time.Minute))
	if text, err := io.ReadAll(client); len(text) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", text, err)
	}
	free := make(chan struct{})
	s.Env.Loop.Do(func() { s.out.Lock(); close(free) })
	<-free // nobody holds it
}

// Each reason is logged once, and none hides another.
func TestReasonsAreToldOnce(t *testing.T) {
	var log bytes.Buffer
	near, _ := net.Pipe()
	meter, _ := events.NewMetrics(prometheus.NewRegistry(), events.Names{Build: []string{"", "", ""}})
	env := NewEnv(config.NewActive(&config.Settings{}), meter, slog.New(slog.NewTextHandler(&log, nil)), nil)
	s := New(context.Background(), env, 1, near)
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
	leaves, ends := (*Session).clientLeft, (*Session).clientEnded
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
			row.left(s.Session)
		}
		for _, why := range row.why {
			s.End(why)
		}
		if got := s.ClientLeaves(); got != row.want {
			t.Errorf("%s: the client's end is %v, want %v", row.name, got, row.want)
		}
	}
}
