package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/loop"
)

// A Socket is a connection whose blocked read another goroutine can interrupt, and
// whose traffic the server's sweep can judge. One goroutine reads at a time and one
// writes at a time, or a loop does both (Attach). Everything else may be called from any goroutine. Reads have
// deadlines and writes have none: a TLS connection survives a read that timed out, and
// breaks by a write that did.
type Socket struct {
	net.Conn
	clock    *Clock
	active   atomic.Int64 // when bytes last came
	writing  atomic.Int64 // when the current write began; 0: none is under way
	large    atomic.Bool  // its reader holds a large buffer
	mu       sync.Mutex
	woken    bool
	deadline time.Time // set by ReadUntil; a wake hides it until ClearWake

	// If a loop reads and writes the connection (attach.go):
	on       atomic.Pointer[loop.Socket] // nil: goroutines read and write it
	loop     *loop.Loop
	task     *loop.Task    // is unparked by what happens to the socket
	written  atomic.Int64  // bytes given to the loop
	sent     atomic.Int64  // those that were in the kernel when the sweep last looked
	over     error         // why the connection is over; guarded by mu
	room     sync.Cond     // mu; there is room to write
	whenRoom func()        // is called then; guarded by mu
	silence  *time.Timer   // ReadUntil; guarded by mu
	patience time.Duration // what silence is set to; guarded by mu
	held     bool          // Pause was called last; guarded by mu
}

// NewSocket takes over a connection. The caller closes it through the socket.
func NewSocket(conn net.Conn, clock *Clock) *Socket {
	s := &Socket{Conn: conn, clock: clock}
	s.active.Store(clock.Now())
	return s
}

// Encrypted tells whether the connection came over TLS.
func (s *Socket) Encrypted() bool {
	_, encrypted := s.Conn.(*tls.Conn)
	return encrypted
}

// Handshake does the TLS handshake of a client that came over TLS.
func (s *Socket) Handshake(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Conn.(*tls.Conn).HandshakeContext(ctx)
}

// Read is net.Conn's, with one more error: ErrWoken after a Wake, until ClearWake.
func (s *Socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 {
		s.touch()
	}
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && s.wasWoken() {
		err = ErrWoken
	}
	return n, err
}

// touch notes that bytes came.
func (s *Socket) touch() {
	if now := s.clock.Now(); s.active.Load() != now { // most reads need no store
		s.active.Store(now)
	}
}

// ErrWoken is Read's error when Wake interrupted it.
var ErrWoken = errors.New("read interrupted")

// Write is net.Conn's. Stalled tells how long it has been under way.
func (s *Socket) Write(p []byte) (int, error) {
	if s.Attached() {
		return s.writeAttached(p)
	}
	s.writing.Store(max(s.clock.Now(), 1))
	n, err := s.Conn.Write(p)
	s.writing.Store(0)
	return n, err
}

// Wake makes the current or the next Read return ErrWoken. The caller first sets the
// flag that the reader should look at.
func (s *Socket) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = true
	if s.Attached() {
		s.task.Unpark()
		return
	}
	_ = s.SetReadDeadline(time.Unix(1, 0))
}

// ClearWake ends a wake. The reader calls it before it looks at the flags, so that no
// wake is lost.
func (s *Socket) ClearWake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken {
		s.woken = false
		if s.Attached() {
			return
		}
		_ = s.SetReadDeadline(s.deadline)
	}
}

// ReadUntil sets the deadline of reads. A wake does not change it.
func (s *Socket) ReadUntil(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	if s.Attached() {
		s.endAt(t)
		return
	}
	if !s.woken {
		_ = s.SetReadDeadline(t)
	}
}

func (s *Socket) wasWoken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.woken
}

// CloseWrite tells the other side that nothing more will come. It leaves the reading
// side open if the transport can, and closes the connection otherwise.
func (s *Socket) CloseWrite() {
	if on := s.on.Load(); on != nil {
		on.CloseWrite()
		return
	}
	if _, encrypted := s.Conn.(*tls.Conn); encrypted && s.writing.Load() != 0 {
		s.Abandon() // TLS would wait for the write under way
		return
	}
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = s.Close()
}

// Close closes the connection. An attached one first sends what waits, within bounds.
func (s *Socket) Close() error {
	if on := s.on.Load(); on != nil {
		on.Close()
		return nil
	}
	return s.Conn.Close()
}

// Abandon closes the connection without TLS's closing message, which could wait for
// seconds until the other side reads it.
func (s *Socket) Abandon() {
	s.mu.Lock() // nothing attaches it meanwhile
	defer s.mu.Unlock()
	if on := s.on.Load(); on != nil {
		on.Abandon()
		return
	}
	if conn, encrypted := s.Conn.(*tls.Conn); encrypted {
		_ = conn.NetConn().Close()
		return
	}
	_ = s.Conn.Close()
}

// Silent is the time since bytes last came.
func (s *Socket) Silent() time.Duration { return s.clock.Since(s.active.Load()) }

// Stalled is the time that the current write has been under way, or 0.
func (s *Socket) Stalled() time.Duration {
	if on := s.on.Load(); on != nil {
		return s.stalledAttached(on)
	}
	began := s.writing.Load()
	if began == 0 {
		return 0
	}
	return s.clock.Since(began)
}

// ShrinkAfter has the reader of a connection that has been silent for longer give
// its large buffer back, by a wake.
func (s *Socket) ShrinkAfter(silence time.Duration) {
	if s.Silent() > silence && s.HasLargeBuffer() {
		s.Wake()
	}
}

// HasLargeBuffer tells whether the reader holds a large buffer. If the connection is
// silent, the sweep wakes the reader, which then gives the buffer back.
func (s *Socket) HasLargeBuffer() bool { return s.large.Load() }

// SetLargeBuffer is called by the reader when it borrows or returns a large buffer.
func (s *Socket) SetLargeBuffer(large bool) { s.large.Store(large) }
