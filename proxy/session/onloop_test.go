package session

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// A large command is read and performed away from the loop, where it delays nobody else.
func TestLargeCommandsLeaveTheLoop(t *testing.T) {
	_, client := start(t, io.Discard)
	ask(t, client, "WHERE\r\n", "+loop\r\n")
	ask(t, client, fmt.Sprintf("*2\r\n$5\r\nWHERE\r\n$1000000\r\n%s\r\n", strings.Repeat("x", 1_000_000)), "+away\r\n")
	ask(t, client, "WHERE\r\n", "+loop\r\n")
}

// A client with very many commands in its pipeline does not hold up the others.
func TestLongPipelineLetsOthersIn(t *testing.T) {
	const count = 3000 // that fit into one read
	s, client := start(t, io.Discard)
	ask(t, client, "A 1\r\n", "+1\r\n")
	performed := make(chan int, 1)
	s.Env.Loop.Do(func() {
		count := 0
		s.perform = func(cmd wire.Command) {
			if count++; count == 1 {
				s.Env.Loop.Do(func() { performed <- count })
			}
			s.answer(cmd)
		}
	})
	ask(t, client, strings.Repeat("A 1\r\n", count), strings.Repeat("+1\r\n", count))
	if before := <-performed; before > mostCommands {
		t.Errorf("%d commands of the pipeline came before anything else", before)
	}
}

// So does one whose pipeline was read ahead, and comes in pieces of a few commands each.
func TestPipelineThatWasReadAheadLetsOthersIn(t *testing.T) {
	const count = 1000
	command := "A " + strings.Repeat("x", 500) + " 1\r\n"
	s, client := start(t, io.Discard)
	ask(t, client, "A 1\r\n", "+1\r\n")
	var open atomic.Bool
	performed := make(chan int, 1)
	s.Env.Loop.Do(func() {
		count := 0
		s.perform = func(cmd wire.Command) {
			if string(cmd.Args[0]) == "WAIT" {
				s.Parked(func(context.Context) {
					for !open.Load() {
						s.task.Park()
					}
				})
				return
			}
			if count++; count == 1 {
				s.Env.Loop.Do(func() { performed <- count })
			}
			s.answer(cmd)
		}
	})
	go func() { _, _ = io.WriteString(client, "WAIT\r\n"+strings.Repeat(command, count)) }()
	for s.Env.Budget.InUse() < count*400 { // most of it
		time.Sleep(time.Millisecond)
	}
	open.Store(true)
	s.task.Unpark()
	ask(t, client, "", strings.Repeat("+1\r\n", count))
	if before := <-performed; before > mostCommands {
		t.Errorf("%d commands of the pipeline came before anything else", before)
	}
}

// endsOnLoop returns where the session will have ended.
func (e *echo) endsOnLoop() <-chan bool {
	ended := make(chan bool, 1)
	e.Env.Loop.Do(func() {
		closed := e.closed
		e.closed = func() {
			ended <- e.OnLoop()
			closed()
		}
	})
	return ended
}

// A session ends on the loop. So a crowd that leaves makes no goroutines, which would keep the loop from
// running.
func TestIdleSessionEndsOnTheLoop(t *testing.T) {
	for _, command := range []string{"A 1\r\n", "BUSY 1\r\n"} {
		s, client := start(t, io.Discard)
		ended := s.endsOnLoop()
		ask(t, client, command, "+1\r\n")
		ask(t, client, "A 2\r\n", "+2\r\n")
		_ = client.Close()
		if onLoop := <-ended; !onLoop {
			t.Errorf("after %q it ended elsewhere", command)
		}
	}
}

// startForwarding starts a session that forwards every command to an upstream. ended tells whether it ended on
// the loop.
func startForwarding(t *testing.T, near net.Conn) (s *echo, client net.Conn, ended <-chan bool) {
	t.Helper()
	s, client = start(t, io.Discard)
	ask(t, client, "A 1\r\n", "+1\r\n")
	s.Env.Active.Replace(func(now config.Settings) config.Settings {
		now.DialUpstream = func(context.Context) (net.Conn, error) { return near, nil }
		return now
	})
	ended = s.endsOnLoop()
	s.Env.Loop.Do(func() {
		s.perform = func(cmd wire.Command) {
			if _, failure := s.Open(s.Env.Active.Load().DialUpstream, &upstream.Login{}); failure == nil {
				s.Forward(cmd, upstream.Expectation{Count: 1})
			}
		}
	})
	return s, client, ended
}

// So does one whose upstream has answered everything, and one whose upstream answers after the client's end.
func TestSessionWithAnUpstreamEndsOnTheLoop(t *testing.T) {
	const ping = "*1\r\n$4\r\nPING\r\n"
	for _, late := range []bool{false, true} {
		may, left := make(chan struct{}, 2), make(chan error, 1)
		may <- struct{}{} // the login
		near, server := proxytest.Pair(t)
		go func() {
			var err error
			for buf := make([]byte, 100); err == nil; {
				if _, err = server.Read(buf); err == nil {
					<-may
					_, err = io.WriteString(server, wire.Pong)
				}
			}
			_ = server.Close()
			left <- err
		}()
		s, client, ended := startForwarding(t, near)
		request := ping
		if late {
			_, _ = io.WriteString(client, ping)
			_ = client.(*net.TCPConn).CloseWrite()
			for !s.HasEnded(ClientGone) {
				time.Sleep(time.Millisecond)
			}
			request = ""
		}
		may <- struct{}{}
		ask(t, client, request, wire.Pong)
		_ = client.Close()
		if onLoop := <-ended; !onLoop {
			t.Errorf("late: %v: it ended elsewhere", late)
		}
		if err := <-left; err != io.EOF {
			t.Errorf("late: %v: the upstream's connection ended with %v", late, err)
		}
	}
}

// A client that leaves while its upstream takes no commands is noticed, so its lock commands end.
func TestClientLeavesAStuckUpstream(t *testing.T) {
	near, server := net.Pipe() // has no room
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		_, _ = server.Read(make([]byte, 100)) // the login
		_, _ = io.WriteString(server, wire.Pong)
	}()
	s, client, _ := startForwarding(t, near)
	go func() {
		for range 4 { // more than is read ahead at once
			_, _ = fmt.Fprintf(client, "*2\r\n$4\r\nECHO\r\n$100000\r\n%s\r\n", strings.Repeat("x", 100_000))
		}
		_ = client.Close()
	}()
	select {
	case <-s.Context().Done():
	case <-time.After(time.Minute):
		t.Error("it is not noticed")
	}
	s.End(CutOff)
}
