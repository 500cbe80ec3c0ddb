package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
)

// adopt has a loop pump one end of a pipe. It returns the other end.
func adopt(t *testing.T, clock *Clock, to Reader) (sock *Socket, far net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	sock, err := Adopt(near, proxytest.Loop(t), nil, clock, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return sock, far
}

// newInput makes an input to which a test gives what comes.
func newInput(t *testing.T, budget *Budget) *Input {
	t.Helper()
	in := NewInput(budget)
	sock, _ := adopt(t, new(Clock), in)
	in.Begin(sock, NewBusyTimer(in, deafSession{}))
	return in
}

// Silence counts from the last bytes that came, and a stall while bytes wait and none are sent.
func TestSilentAndStalled(t *testing.T) {
	var clock Clock
	sock, far := adopt(t, &clock, proxytest.Deaf{})
	clock.Advance(int64(time.Minute))
	if sock.Silent() != time.Minute || sock.Stalled() != 0 {
		t.Errorf("silent for %v, stalled for %v", sock.Silent(), sock.Stalled())
	}
	_ = sock.Append([]byte("ab"))
	_, _ = far.Read(make([]byte, 1)) // and not the rest
	if sock.Stalled() != 0 {
		t.Errorf("stalled for %v at the first look", sock.Stalled())
	}
	clock.Advance(int64(2 * time.Minute))
	if sock.Stalled() != time.Minute {
		t.Errorf("stalled for %v", sock.Stalled())
	}
	_, _ = far.Read(make([]byte, 1))
	for end := time.Now().Add(time.Minute); sock.Stalled() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is stalled after everything was sent")
		}
	}
}

// A server is quiet if it neither sends nor takes anything, while it may be read. A server that still takes a long
// command is not.
func TestQuiet(t *testing.T) {
	clock := new(Clock)
	sock, far := adopt(t, clock, proxytest.Deaf{})
	quiet := func(passed time.Duration) time.Duration {
		clock.Advance(clock.Now() + int64(passed))
		return sock.Quiet()
	}
	if quiet(time.Hour) != 0 || quiet(time.Minute) != time.Minute {
		t.Error("silence does not count from the first look on")
	}
	_ = sock.Append([]byte("ab"))
	if _, err := io.ReadFull(far, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	for sock.Waiting() > 0 {
		time.Sleep(time.Millisecond)
	}
	if quiet(time.Minute) != 0 || quiet(time.Minute) != time.Minute {
		t.Error("its time does not begin again when something is taken")
	}
	sock.Pause()
	for range 2 {
		if quiet(time.Minute) != 0 {
			t.Error("time passes while nothing may be read")
		}
	}
	sock.Resume()
	if quiet(time.Minute) != time.Minute {
		t.Error("no time passes when it may be read again")
	}
	_, _ = far.Write([]byte("x"))
	for end := time.Now().Add(time.Minute); sock.Quiet() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it passes for quiet although it has sent something")
		}
	}
}

// Memory follows what came, is charged beyond the small buffer, and is all given back.
func TestInputTakesWhatItNeeds(t *testing.T) {
	limit := int64(1 << 20)
	budget := NewBudget(func() int64 { return limit })
	in := newInput(t, budget)
	in.SetLimit(1 << 19)
	text := strings.Repeat("0123456789", 20_000)
	in.Expect(len(text))
	if err := receive(in, text); err != nil {
		t.Fatal(err)
	}
	if string(in.Unread()) != text || budget.InUse() < int64(len(text)) {
		t.Errorf("%d bytes are unread, %d are charged", len(in.Unread()), budget.InUse())
	}
	in.Consume(10)
	if got := string(in.Unread()); got != text[10:] {
		t.Errorf("%d bytes are left", len(got))
	}
	in.Consume(len(text) - 10)
	if err := in.Fill(); err != ErrNothing || budget.InUse() != 0 || in.buf != nil {
		t.Errorf("%v, and %d bytes are charged by an empty input", err, budget.InUse())
	}
	in.EndFill()
	limit = 10
	if err := receive(in, text); !errors.Is(err, ErrNoMemory) {
		t.Error(err)
	}
	in.Release()
	if budget.InUse() != 0 {
		t.Errorf("%d bytes are charged in the end", budget.InUse())
	}
}

func TestUnfinishedCommandIsBounded(t *testing.T) {
	const limit = 70_000
	for _, length := range []int{limit + 1, 100_000, 200_000} {
		in := newInput(t, NewBudget(func() int64 { return 1 << 30 }))
		in.SetLimit(limit)
		in.Expect(length)
		err := receive(in, string(bytes.Repeat([]byte("x"), length)))
		if err == nil {
			err = in.Fill() // the session has found no end
		}
		if !errors.Is(err, ErrQueryTooLong) || len(in.Unread()) > limit+1 {
			t.Errorf("of %d bytes: %v with %d bytes unread", length, err, len(in.Unread()))
		}
	}
}

// receive has a session wait for text, which comes as from a loop.
func receive(in *Input, text string) error {
	for have := len(in.Unread()); len(in.Unread()) < have+len(text); {
		if err := in.Fill(); err == nil {
			continue
		} else if err != ErrNothing {
			return err
		}
		next := text[len(in.Unread())-have:]
		in.Received([]byte(next[:min(len(next), 16<<10)]))
		in.EndFill()
	}
	return nil
}

// What is read ahead comes first, then what ended the stream.
func TestReadAhead(t *testing.T) {
	budget := NewBudget(func() int64 { return 1 << 20 })
	in := newInput(t, budget)
	in.Received([]byte("ab"))
	in.Received([]byte("cd"))
	in.Ended(io.EOF)
	if in.Arrived() != 4 || in.ended() == nil || budget.InUse() != 4 {
		t.Errorf("%d bytes are charged", budget.InUse())
	}
	if err := in.Fill(); err != nil || string(in.Unread()) != "abcd" || in.Arrived() != in.Filled() || budget.InUse() != 0 {
		t.Errorf("%q %v, %d charged", in.Unread(), err, budget.InUse())
	}
	in.Consume(4)
	if err := in.Fill(); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
}
