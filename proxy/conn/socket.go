package conn

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A Socket is a connection whose blocked read can be interrupted from
// outside, and whose traffic the server's sweep can judge. One goroutine
// reads at a time and one writes at a time; all else may come from anywhere.
// Reads are bounded by deadlines and writes are not: a TLS connection survives
// the former and breaks by the latter.
type Socket struct {
	net.Conn
	clock    *Clock
	active   atomic.Int64 // when bytes last came
	writing  atomic.Int64 // when the write under way began; 0: none is
	large    atomic.Bool  // its reader sits on a large buffer
	mu       sync.Mutex
	woken    bool
	deadline time.Time // the reader's own, which a wake hides until ClearWake
}

// NewSocket takes a connection, which is closed through it.
func NewSocket(conn net.Conn, clock *Clock) *Socket {
	s := &Socket{Conn: conn, clock: clock}
	s.active.Store(clock.Now())
	return s
}

// Read is net.Conn's; ErrWoken means that somebody called Wake, and lasts
// until ClearWake.
func (s *Socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if now := s.clock.Now(); n > 0 && s.active.Load() != now { // it moves once in many reads
		s.active.Store(now)
	}
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && s.wasWoken() {
		err = ErrWoken
	}
	return n, err
}

// ErrWoken is Read's error when Wake interrupted it.
var ErrWoken = errors.New("read interrupted")

// Write is net.Conn's. Stalled tells of one that does not end.
func (s *Socket) Write(p []byte) (int, error) {
	s.writing.Store(max(s.clock.Now(), 1))
	n, err := s.Conn.Write(p)
	s.writing.Store(0)
	return n, err
}

// Wake makes the present or the next Read return ErrWoken. Whoever calls it
// first sets the flag that the reader is to see.
func (s *Socket) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = true
	_ = s.SetReadDeadline(time.Unix(1, 0))
}

// ClearWake ends a wake. The reader calls it and then looks at the flags, in this
// order, so that no wake is lost.
func (s *Socket) ClearWake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken {
		s.woken = false
		_ = s.SetReadDeadline(s.deadline)
	}
}

// ReadUntil bounds reads by a time that wakes leave in force.
func (s *Socket) ReadUntil(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if !s.woken {
		_ = s.SetReadDeadline(t)
	}
}

func (s *Socket) wasWoken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.woken
}

// CloseWrite tells the other side that nothing more will come, and leaves the
// reading side open where the transport can.
func (s *Socket) CloseWrite() {
	if s.encrypted() && s.writing.Load() != 0 {
		s.Abandon() // TLS would first wait for the write under way
		return
	}
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = s.Close()
}

// Abandon closes without a word. TLS says goodbye, and that may wait for
// seconds until the other side takes it.
func (s *Socket) Abandon() {
	if conn, encrypted := s.Conn.(*tls.Conn); encrypted {
		_ = conn.NetConn().Close()
		return
	}
	_ = s.Close()
}

func (s *Socket) encrypted() bool {
	_, encrypted := s.Conn.(*tls.Conn)
	return encrypted
}

// Silent tells for how long no bytes have come.
func (s *Socket) Silent() time.Duration { return s.clock.Since(s.active.Load()) }

// Stalled tells for how long the other side has not taken a write.
func (s *Socket) Stalled() time.Duration {
	began := s.writing.Load()
	if began == 0 {
		return 0
	}
	return s.clock.Since(began)
}

// HasLargeBuffer tells whether its reader sits on a large buffer, as it said with
// SetLargeBuffer. A wake has the reader of a silent connection give it back.
func (s *Socket) HasLargeBuffer() bool { return s.large.Load() }

// SetLargeBuffer is the reader's.
func (s *Socket) SetLargeBuffer(large bool) { s.large.Store(large) }
