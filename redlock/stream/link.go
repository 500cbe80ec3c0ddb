package stream

import (
	"io"
	"sync"
	"sync/atomic"

	"redlock-proxy/redlock/loop"
)

// A link is an open connection of a stream. The event loop reads and writes it. What the loop calls
// must not wait: the loop serves many connections. All calls of a round go out with one check.
type link struct {
	stream *Stream
	socket *loop.Socket
	ended  chan struct{} // closed when the loop has let go of the connection
	atEnd  func()        // flush, as one value for all rounds
	sent   func()        // drained, the same
	queued atomic.Bool
	away   sync.WaitGroup // the goroutine of leave

	in answers // leave's goroutine uses it while it runs, and otherwise the loop
	// Only the loop uses these.
	why    error // not nil: the connection is over
	empty  []byte
	unsent bool // bytes wait for the kernel
	held   bool // calls wait until the kernel has those bytes
}

// newLink makes the link of a new connection, and owns the connection from then on. After an error it
// is still the caller's.
func (s *Stream) newLink(c *Connection) (*link, error) {
	k := &link{stream: s, in: answers{Reader: c.Reader}, ended: make(chan struct{})}
	k.atEnd, k.sent = k.flush, k.drained
	socket, err := s.loop.Adopt(c.Conn, k)
	if err != nil {
		return nil, err
	}
	k.socket = socket
	socket.ReadFirst()
	return k, nil
}

// wake has, with s.mu held, the queued calls sent. A connection that begins sends them in
// any case.
func (s *Stream) wake() {
	if s.link != nil {
		s.link.wake()
	}
}

// run returns when the connection has ended and nothing of it is called any more. It returns why.
func (k *link) run() error {
	k.stream.loop.Do(func() {
		k.Received(nil) // nothing was asked yet, so bytes behind the handshake's are a defect
		k.flush()
		k.socket.Resume()
	})
	k.stream.loop.Wait(loop.Forever, k.ended)
	k.stream.loop.Join(&k.away)
	return k.why
}

// wake has flush called soon. It does not wait. The stream's mutex is held.
func (k *link) wake() {
	if !k.queued.Swap(true) {
		k.stream.loop.AtEnd(k.atEnd)
	}
}

// close ends the connection at once. Any goroutine may call it at any time.
func (k *link) close() { k.socket.Abandon() }

// maxIdleBuffer is the largest buffer that an idle link keeps.
const maxIdleBuffer = 256 << 10

// flush sends the queued calls, at the end of a round. While the kernel does not take what
// was sent before, they stay queued, because a call that is not sent can be given up.
func (k *link) flush() {
	k.queued.Store(false)
	if k.why != nil {
		return
	}
	if k.held = k.unsent; k.held {
		return
	}
	k.fail(Contain(k.stream.log, func() error {
		k.empty = k.stream.flush(k.empty)
		_ = k.socket.Write(k.empty) // Ended says if it fails
		return nil
	}))
	k.unsent = k.socket.WhenDrained(0, k.sent)
	if cap(k.empty) > maxIdleBuffer {
		k.empty = nil
	}
}

// drained is called by the loop when the kernel has everything.
func (k *link) drained() {
	k.unsent = false
	if k.held {
		k.flush()
	}
}

// Received implements loop.Receiver.
func (k *link) Received(p []byte) {
	if k.why != nil {
		return
	}
	k.fail(Contain(k.stream.log, func() error {
		if err := k.in.Feed(p); err != nil {
			return err
		}
		return k.handOut()
	}))
}

// These are the most bytes and the most calls of a batch that is answered on the loop. Who is
// asked may compare the bytes with those of other masters. A master that was silent for a
// while answers thousands of calls at once.
const (
	largeBatch = 64 << 10
	manyCalls  = 512
)

func (k *link) handOut() error {
	for {
		whole, err := k.stream.gather(&k.in)
		if !whole || err != nil {
			return err
		}
		if k.in.Held() > largeBatch || len(k.in.batch) > manyCalls {
			k.leave()
			return nil
		}
		if err := k.stream.answerBatch(&k.in); err != nil {
			return err
		}
	}
}

// leave answers a whole batch, and those behind it, on a goroutine of its own. Nothing is
// read meanwhile.
func (k *link) leave() {
	k.socket.Pause()
	k.stream.loop.Spawn(&k.away, func() {
		err := Contain(k.stream.log, func() error {
			if err := k.stream.answerBatch(&k.in); err != nil {
				return err
			}
			return k.stream.handOut(&k.in)
		})
		k.stream.loop.Do(func() {
			k.fail(err)
			k.socket.Resume()
		})
	})
}

// Ended implements loop.Receiver.
func (k *link) Ended(err error) {
	if err == io.EOF {
		k.fail(err)
		return
	}
	if k.why == nil {
		k.why = err
	}
	close(k.ended)
}

// fail ends the connection if err is not nil.
func (k *link) fail(err error) {
	if err != nil && k.why == nil {
		k.why = err
		k.close()
	}
}
