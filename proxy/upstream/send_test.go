package upstream

import (
	"strings"
	"testing"
)

func TestWriteWaitsForTheServer(t *testing.T) {
	r := newRig(t)
	a, b := r.member(0), r.member(0)
	server := <-r.servers
	done := make(chan struct{})
	go func() { // the server reads nothing
		defer close(done)
		for range 2000 {
			a.sends(strings.Repeat("x", 50_000), 1)
		}
	}()
	c := b.conn.Load()
	eventually(t, "much waits", func() bool { return c.sock.Waiting() > mostUnsent })
	select {
	case <-done:
		t.Fatal("100 MB are buffered")
	default:
	}
	_ = server.Close()
	<-done
	if !a.Failed() || b.Failed() {
		t.Errorf("failed: %v, %v", a.Failed(), b.Failed())
	}
}

// A member that waits for the server has no more memory than its commands need.
func TestWhoWaitsKeepsItsCommandsOnly(t *testing.T) {
	r := newRig(t)
	a, b := r.member(0), r.member(0)
	server := <-r.servers
	before := strings.Repeat("x", 16<<20) // more than the kernel takes while the server reads nothing
	a.sends(before, 1)
	if b.Forward([]byte("short"), Expectation{Count: 1}); !b.MustWait() {
		t.Error("nothing waits")
	}
	kept, done := make(chan int, 1), make(chan struct{})
	b.unpark = func() { kept <- cap(b.gathered); b.task.Unpark() } // while Send still waits
	go func() { defer close(done); b.Send() }()
	hears(t, server, before+"short")
	await(t, "Send's end", done)
	if size := <-kept; size > 100 {
		t.Errorf("a command of 5 bytes takes %d", size)
	}
}

// Commands enter a connection together with what is expected for them, and not before: another member's may come
// in between.
func TestTurnsEnterWithTheirCommands(t *testing.T) {
	r := newRig(t)
	a, b := r.member(0), r.member(0)
	server := <-r.servers
	first, second := strings.Repeat("x", muchGathered), strings.Repeat("y", muchGathered)
	a.Forward([]byte("a1"), Expectation{Count: 1})
	if !a.Gathers() || !a.Drained() {
		t.Error("something is expected before its command is sent")
	}
	b.sends("b1", 1)
	a.Forward([]byte("a2"), Expectation{Count: 1})
	a.Send()
	if a.Forward([]byte(first), Expectation{Count: 1}) || !a.Forward([]byte(second), Expectation{Count: 1}) {
		t.Error("it is not full when much is gathered, or before")
	}
	b.sends("b2", 1)
	a.Send()
	hears(t, server, "b1a1a2b2"+first+second)
	say(server, "+b1\r\n+a1\r\n+a2\r\n+b2\r\n+first\r\n+second\r\n")
	hears(t, a.client, "+a1\r\n+a2\r\n+first\r\n+second\r\n")
	hears(t, b.client, "+b1\r\n+b2\r\n")
	if !a.waits() || !b.waits() || a.Gathers() || a.gathered != nil {
		t.Error("something is still to be sent, or to come")
	}
}

// So does a long command, while bytes of others wait.
func TestLongCommandEntersWithItsTurn(t *testing.T) {
	r := newRig(t)
	a, b := r.member(0), r.member(0)
	server := <-r.servers
	long, before := strings.Repeat("x", 6*muchGathered), strings.Repeat("y", mostUnsent/2)
	b.sends(before, 1)
	eventually(t, "some bytes are sent", func() bool { return b.conn.Load().sock.Waiting() < len(before) })
	a.Forward([]byte("a"), Expectation{Count: 1})
	a.sends(long, 1)
	b.sends("b", 1)
	hears(t, server, before+"a"+long+"b")
	say(server, "+b1\r\n+a\r\n+long\r\n+b2\r\n")
	hears(t, a.client, "+a\r\n+long\r\n")
	hears(t, b.client, "+b1\r\n+b2\r\n")
}
