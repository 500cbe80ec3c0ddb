package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A clock is a cheap, coarse time shared by all sessions: the server's sweep
// moves it, so that the data path needs no system clock and no timers.
type clock struct{ nanoseconds atomic.Int64 }

func (c *clock) now() int64       { return c.nanoseconds.Load() }
func (c *clock) advance(to int64) { c.nanoseconds.Store(to) }

func (c *clock) since(then int64) time.Duration { return time.Duration(c.now() - then) }

// A socket is a connection whose blocked read can be interrupted from
// outside, and whose traffic the server's sweep can judge. One goroutine
// reads at a time and one writes at a time; all else may come from anywhere.
// Reads are bounded by deadlines and writes are not: a TLS connection survives
// the former and breaks by the latter.
type socket struct {
	net.Conn
	clock    *clock
	active   atomic.Int64 // when bytes last came
	writing  atomic.Int64 // when the write under way began; 0: none is
	swollen  atomic.Bool  // its reader sits on a large buffer
	mu       sync.Mutex
	woken    bool
	deadline time.Time // the reader's own, which a wake hides until calm
}

func newSocket(conn net.Conn, clock *clock) *socket {
	s := &socket{Conn: conn, clock: clock}
	s.active.Store(clock.now())
	return s
}

// Read is net.Conn's; errWoken means that somebody called wake, and lasts
// until calm.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if now := s.clock.now(); n > 0 && s.active.Load() != now { // it moves once in many reads
		s.active.Store(now)
	}
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && s.wasWoken() {
		err = errWoken
	}
	return n, err
}

var errWoken = errors.New("read interrupted")

func (s *socket) Write(p []byte) (int, error) {
	s.writing.Store(max(s.clock.now(), 1))
	n, err := s.Conn.Write(p)
	s.writing.Store(0)
	return n, err
}

// wake makes the present or the next Read return errWoken. Whoever calls it
// first sets the flag that the reader is to see.
func (s *socket) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = true
	_ = s.SetReadDeadline(time.Unix(1, 0))
}

// calm ends a wake. The reader calls it and then looks at the flags, in this
// order, so that no wake is lost.
func (s *socket) calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken {
		s.woken = false
		_ = s.SetReadDeadline(s.deadline)
	}
}

// readUntil bounds reads by a time that wakes leave in force.
func (s *socket) readUntil(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if !s.woken {
		_ = s.SetReadDeadline(t)
	}
}

func (s *socket) wasWoken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.woken
}

// closeWrite tells the other side that nothing more will come, and leaves the
// reading side open where the transport can.
func (s *socket) closeWrite() {
	if s.encrypted() && s.writing.Load() != 0 {
		s.abandon() // TLS would first wait for the write under way
		return
	}
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = s.Close()
}

// abandon closes without a word. TLS says goodbye, and that may wait for
// seconds until the other side takes it.
func (s *socket) abandon() {
	if conn, encrypted := s.Conn.(*tls.Conn); encrypted {
		_ = conn.NetConn().Close()
		return
	}
	_ = s.Close()
}

func (s *socket) encrypted() bool {
	_, encrypted := s.Conn.(*tls.Conn)
	return encrypted
}

// silent tells for how long no bytes have come.
func (s *socket) silent() time.Duration { return s.clock.since(s.active.Load()) }

// stalled tells for how long the other side has not taken a write.
func (s *socket) stalled() time.Duration {
	began := s.writing.Load()
	if began == 0 {
		return 0
	}
	return s.clock.since(began)
}

// hasLargeBuffer tells whether its reader sits on a large buffer, as it said with
// setLargeBuffer. A wake has the reader of a silent connection give it back.
func (s *socket) hasLargeBuffer() bool      { return s.swollen.Load() }
func (s *socket) setLargeBuffer(large bool) { s.swollen.Store(large) }

const (
	smallBuffer = 1 << 10  // what an idle connection keeps
	largeBuffer = 32 << 10 // what a busy one borrows
)

func borrowBuffer() *[largeBuffer]byte { return largeBuffers.Get().(*[largeBuffer]byte) }

func returnBuffer(buf *[largeBuffer]byte) { largeBuffers.Put(buf) }

var largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

// An output is the writing side of the client's socket. The session and the
// copier of upstream replies share it: who writes has taken it, and gives it
// back only between two top-level values. It may be held across I/O, which
// is why it is no mutex.
type output struct {
	to  *socket
	pen chan struct{}
}

func newOutput(to *socket) *output {
	return &output{to: to, pen: make(chan struct{}, 1)}
}

func (o *output) take() { o.pen <- struct{}{} }
func (o *output) give() { <-o.pen }

// Write writes to the socket. The caller has taken the writing side.
func (o *output) Write(p []byte) (int, error) { return o.to.Write(p) }
