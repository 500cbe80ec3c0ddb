package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func pair(t *testing.T) (sock *Socket, far net.Conn, clock *Clock) {
	near, far := net.Pipe()
	clock = &Clock{}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return NewSocket(near, clock), far, clock
}

// A wake interrupts the read under way and every later one until it is cleared,
// and keeps the reader's own deadline.
func TestWake(t *testing.T) {
	sock, far, _ := pair(t)
	go sock.Wake()
	for range 2 {
		if _, err := sock.Read(make([]byte, 1)); !errors.Is(err, ErrWoken) {
			t.Fatalf("a woken read ends with %v", err)
		}
	}
	sock.ClearWake()
	go func() { _, _ = far.Write([]byte("x")) }()
	if n, err := sock.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("after the wake: %d %v", n, err)
	}
	sock.Wake()
	sock.ReadUntil(time.Now().Add(-time.Second))
	if _, err := sock.Read(make([]byte, 1)); !errors.Is(err, ErrWoken) {
		t.Fatalf("the deadline hides the wake: %v", err)
	}
	sock.ClearWake()
	if _, err := sock.Read(make([]byte, 1)); err == nil || errors.Is(err, ErrWoken) {
		t.Fatalf("the wake hides the deadline: %v", err)
	}
}

// A slowConn is closed when the other side has read the closing message, as over TLS.
type slowConn struct {
	net.Conn
	closing, read chan struct{}
}

func (c slowConn) Close() error {
	close(c.closing)
	<-c.read
	return c.Conn.Close()
}

// A client that does not read the closing message holds up nobody: the process wakes each client
// when it ends.
func TestACloseThatWaitsHoldsUpNobody(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c := slowConn{near, make(chan struct{}), make(chan struct{})}
	sock := NewSocket(c, &Clock{})
	closed, woken := make(chan struct{}), make(chan struct{})
	go func() { _ = sock.Close(); close(closed) }()
	<-c.closing
	go func() { sock.Wake(); sock.ClearWake(); sock.ReadUntil(time.Now()); close(woken) }()
	select {
	case <-woken:
	case <-time.After(30 * time.Second):
		t.Error("a wake waits for the close")
	}
	close(c.read)
	<-closed
}

func TestSilentAndStalled(t *testing.T) {
	sock, far, clock := pair(t)
	clock.Advance(int64(time.Minute))
	if sock.Silent() != time.Minute || sock.Stalled() != 0 {
		t.Errorf("silent for %v, stalled for %v", sock.Silent(), sock.Stalled())
	}
	written := make(chan struct{})
	go func() { _, _ = sock.Write([]byte("ab")); close(written) }()
	_, _ = far.Read(make([]byte, 1)) // and not the rest
	clock.Advance(int64(2 * time.Minute))
	if sock.Stalled() != time.Minute {
		t.Errorf("stalled for %v", sock.Stalled())
	}
	_, _ = far.Read(make([]byte, 1))
	<-written
	if sock.Stalled() != 0 {
		t.Errorf("stalled for %v after the write", sock.Stalled())
	}
}

// Memory follows what came, is charged beyond the large buffer, and is all given
// back.
func TestInputTakesWhatItNeeds(t *testing.T) {
	limit := int64(1 << 20)
	budget := NewBudget(func() int64 { return limit })
	sock, far, _ := pair(t)
	in := NewInput(sock, budget)
	in.SetLimit(1 << 19)
	text := strings.Repeat("0123456789", 20_000)
	go func() { _, _ = io.WriteString(far, text) }()
	in.Expect(len(text))
	for len(in.Unread()) < len(text) {
		if err := in.Fill(); err != nil {
			t.Fatal(err)
		}
	}
	if string(in.Unread()) != text || budget.InUse() < int64(len(text)) || !sock.HasLargeBuffer() {
		t.Errorf("%d bytes are unread, %d are charged", len(in.Unread()), budget.InUse())
	}
	from := in.Offset()
	in.Consume(10)
	if got := in.Between(from, in.Offset()); string(got) != text[:10] {
		t.Errorf("consumed %q", got)
	}
	in.Consume(len(text) - 10)
	in.Shrink()
	if budget.InUse() != 0 || sock.HasLargeBuffer() {
		t.Errorf("%d bytes are charged by an empty input", budget.InUse())
	}
	limit = 10
	go func() { _, _ = io.WriteString(far, text) }()
	for {
		if err := in.Fill(); err != nil {
			if !errors.Is(err, ErrNoMemory) {
				t.Error(err)
			}
			break
		}
	}
	in.Release()
	if budget.InUse() != 0 {
		t.Errorf("%d bytes are charged in the end", budget.InUse())
	}
}

func TestUnfinishedCommandIsBounded(t *testing.T) {
	budget := NewBudget(func() int64 { return 1 << 30 })
	sock, far, _ := pair(t)
	in := NewInput(sock, budget)
	in.SetLimit(100_000)
	go func() { _, _ = far.Write(bytes.Repeat([]byte("x"), 200_000)) }()
	for {
		if err := in.Fill(); err != nil {
			if !errors.Is(err, ErrQueryTooLong) || len(in.Unread()) > 200_000 {
				t.Errorf("%v with %d bytes unread", err, len(in.Unread()))
			}
			return
		}
	}
}

// What is read ahead comes first, then what ended the stream.
func TestReadAhead(t *testing.T) {
	budget := NewBudget(func() int64 { return 1 << 20 })
	sock, _, _ := pair(t)
	in := NewInput(sock, budget)
	if !in.hasRoomAhead(10) || in.hasRoomAhead(1<<20+1) {
		t.Error("the room is not what the budget has")
	}
	in.keepAhead([]byte("ab"))
	in.keepAhead([]byte("cd"))
	in.endAhead(io.EOF)
	if in.Arrived() != 4 || in.endedAhead() == nil || budget.InUse() != 4 {
		t.Errorf("%d bytes are charged", budget.InUse())
	}
	if err := in.Fill(); err != nil || string(in.Unread()) != "abcd" || in.Arrived() != in.Filled() || budget.InUse() != 0 {
		t.Errorf("%q %v, %d charged", in.Unread(), err, budget.InUse())
	}
	if err := in.Fill(); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
}
