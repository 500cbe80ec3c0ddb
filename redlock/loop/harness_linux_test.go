package loop

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/testca"
)

// running is a loop that runs until the test ends.
type running struct {
	*Loop
	log  *lockedBuffer
	stop func() // ends Run and waits for it; may be called again
}

func start(t testing.TB) *running { return run(t, New) }

func run(t testing.TB, build func(*slog.Logger) (*Loop, error)) *running {
	t.Helper()
	log := &lockedBuffer{}
	l, err := build(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	r := &running{Loop: l, log: log, stop: func() {
		cancel()
		waitFor(t, done, "the end of Run")
	}}
	t.Cleanup(r.stop)
	return r
}

// Go runs a task that never rests.
func (r *running) Go(body func(*Task)) *Task {
	return r.Loop.Go(func(t *Task) (rests bool) { body(t); return false })
}

// flush returns after everything that was queued before has been handled.
func (r *running) flush(t testing.TB) {
	t.Helper()
	for range 3 { // a round may leave work for the next
		done := make(chan struct{})
		if !r.Do(func() { close(done) }) {
			t.Fatal("the loop has ended")
		}
		waitFor(t, done, "a function on the loop")
	}
}

func waitFor(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("waited in vain for %s", what)
	}
}

// A recorder is a Receiver that notes its calls. Its functions may be nil.
type recorder struct {
	mu       sync.Mutex
	got      bytes.Buffer
	ended    []error
	changed  chan struct{} // has one item after a change
	received func(p []byte)
}

func newRecorder() *recorder { return &recorder{changed: make(chan struct{}, 1)} }

func (r *recorder) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *recorder) Received(p []byte) {
	r.note(func() { r.got.Write(p) })
	if r.received != nil {
		r.received(p)
	}
}
func (r *recorder) Ended(err error) { r.note(func() { r.ended = append(r.ended, err) }) }

func (r *recorder) ends() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ended)
}

func (r *recorder) bytes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

// until waits until ok, which is called with the recorder locked, returns true.
func (r *recorder) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for {
		r.mu.Lock()
		yes := ok()
		r.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-r.changed:
		case <-time.After(30 * time.Second):
			t.Fatalf("waited in vain for %s: %d bytes, ended %v", what, r.got.Len(), r.ended)
		}
	}
}

func (r *recorder) untilEnded(t testing.TB, want ...error) {
	t.Helper()
	r.until(t, "the end", func() bool { return len(r.ended) >= len(want) })
	for i, err := range want {
		if !errors.Is(r.ended[i], err) {
			t.Errorf("ended %v, want %v", r.ended, want)
		}
	}
}

// hidden is a connection whose descriptor cannot be had, so it is pumped.
type hidden struct{ net.Conn }

func (h hidden) CloseWrite() error { return h.Conn.(*net.TCPConn).CloseWrite() }

// pair returns the two ends of a connection: "tcp", "unix", "pumped", or over TLS "tls" or "pumped tls".
func pair(t testing.TB, network string) (ours, theirs net.Conn) {
	t.Helper()
	switch network {
	case "unix":
		return dialPair(t, "unix", filepath.Join(t.TempDir(), "s"))
	case "pumped":
		ours, theirs = dialPair(t, "tcp", "127.0.0.1:0")
		return hidden{ours}, theirs
	case "tls":
		return tlsPair(t, Below)
	case "pumped tls":
		return tlsPair(t, func(c net.Conn) net.Conn { return c })
	}
	return dialPair(t, "tcp", "127.0.0.1:0")
}

// inHalves sends each write in two, so that records of TLS come in parts.
type inHalves struct{ net.Conn }

func (h inHalves) Write(p []byte) (int, error) {
	n, err := h.Conn.Write(p[:len(p)/2])
	if err != nil {
		return n, err
	}
	more, err := h.Conn.Write(p[n:])
	return n + more, err
}

func tlsPair(t testing.TB, wrap func(net.Conn) net.Conn) (ours, theirs net.Conn) {
	t.Helper()
	authority := testca.New(t)
	under, above := dialPair(t, "tcp", "127.0.0.1:0")
	server := tls.Server(wrap(under), &tls.Config{Certificates: []tls.Certificate{authority.Issue(time.Hour).Load(t)}})
	client := tls.Client(inHalves{above}, &tls.Config{RootCAs: authority.Pool(), ServerName: "127.0.0.1"})
	shaken := make(chan error, 1)
	go func() { shaken <- client.Handshake() }()
	if err := errors.Join(server.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	return server, client
}

func dialPair(t testing.TB, network, address string) (ours, theirs net.Conn) {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if theirs, err = net.Dial(network, ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// adopt gives one end of a new connection to the loop and begins reading.
func (r *running) adopt(t testing.TB, network string, to Receiver) (*Socket, net.Conn) {
	t.Helper()
	ours, theirs := pair(t, network)
	s, err := r.Adopt(ours, to)
	if err != nil {
		t.Fatal(err)
	}
	s.Resume()
	return s, theirs
}

func readFull(t testing.TB, c net.Conn, n int) []byte {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	p := make([]byte, n)
	if got, err := io.ReadFull(c, p); err != nil {
		t.Fatalf("read %d of %d bytes: %v", got, n, err)
	}
	return p
}

// A lockedBuffer is a log.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
