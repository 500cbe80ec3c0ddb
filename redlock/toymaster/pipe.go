package toymaster

import (
	"errors"
	"io"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/sim"
)

var (
	errReset   = errors.New("connection reset by peer")
	errClosed  = errors.New("use of closed connection")
	errRefused = errors.New("connection refused")
)

// A pipe is one direction of a connection. Writing never blocks, so a writer does
// not notice that the other side has stopped, as with a socket that has large buffers.
// Bytes never overtake each other.
type pipe struct {
	chunks  []chunk
	last    time.Time // when the youngest chunk arrives
	from    time.Time // the reader reads nothing before this
	paused  bool      // the reader's process has stopped: what arrives waits in its buffers
	lost    bool      // nothing written from now on arrives
	broken  error     // the reader gets this at once
	cutOff  time.Time // from then on the network passes nothing; zero: it passes all
	arrival chan struct{}

	world  *sim.World
	reader func()     // is called when there may be something to read; nil: read waits
	next   *sim.Event // the next call of reader
}

// A chunk is the bytes of one write. The last chunk has an error.
type chunk struct {
	due  time.Time
	data []byte
	err  error
}

func newPipe(world *sim.World) *pipe { return &pipe{arrival: make(chan struct{}, 1), world: world} }

// write copies data, which arrives at due unless earlier bytes come later.
func (p *pipe) write(data []byte, due time.Time) {
	p.put(chunk{due: due, data: append([]byte(nil), data...)})
}

// end closes the pipe for writing, as a FIN does.
func (p *pipe) end(due time.Time) { p.put(chunk{due: due, err: io.EOF}) }

func (p *pipe) put(c chunk) {
	if !p.lost {
		if c.due.Before(p.last) {
			c.due = p.last
		}
		p.last = c.due
		p.chunks = append(p.chunks, c)
		p.lost = c.err != nil
	}
	p.signal()
}

func (p *pipe) signal() {
	if p.reader != nil {
		p.arrange()
		return
	}
	p.world.After(0, func() {
		select {
		case p.arrival <- struct{}{}:
		default:
		}
	})
}

func (p *pipe) read(b []byte) (int, error) {
	for {
		n, wait, err := p.take(b, time.Now())
		switch {
		case n > 0 || err != nil:
			return n, err
		case wait == 0:
			wait = loop.Forever
		}
		p.world.Wait(wait, p.arrival)
	}
}

// tell has f called, as an event of the World, whenever there may be something to read. nil ends that.
func (p *pipe) tell(f func()) {
	p.reader = f
	p.arrange()
}

// arrange makes the next call of the reader an event.
func (p *pipe) arrange() {
	if p.next != nil {
		p.next.Cancel()
		p.next = nil
	}
	if p.reader == nil {
		return
	}
	if wait, ever := p.due(time.Now()); ever {
		p.next = p.world.After(wait, func() { p.next = nil; p.reader() }).Quiet()
	}
}

// due is the time until there is something to read, as far as is known.
func (p *pipe) due(now time.Time) (wait time.Duration, ever bool) {
	_, wait, err := p.take(nil, now)
	return wait, wait > 0 || err != nil || p.readable(now)
}

func (p *pipe) readable(now time.Time) bool {
	return len(p.chunks) > 0 && !p.paused && (p.cutOff.IsZero() || p.chunks[0].due.Before(p.cutOff))
}

// takeAll is read without waiting. It returns 0 and nil if nothing is there.
func (p *pipe) takeAll(b []byte) (n int, err error) {
	for now := time.Now(); n < len(b) && err == nil; {
		var more int
		if more, _, err = p.take(b[n:], now); more == 0 {
			break
		}
		n += more
	}
	if n > 0 {
		err = nil // the next call returns it
	}
	if err == nil {
		p.arrange()
	}
	return n, err
}

// take returns what has arrived, or else the time until something arrives. 0: unknown.
func (p *pipe) take(b []byte, now time.Time) (n int, wait time.Duration, err error) {
	switch {
	case p.broken != nil:
		return 0, 0, p.broken
	case len(p.chunks) == 0 || p.paused || !p.cutOff.IsZero() && !p.chunks[0].due.Before(p.cutOff):
		return 0, 0, nil
	}
	first := &p.chunks[0]
	due := first.due
	if due.Before(p.from) {
		due = p.from
	}
	if due.After(now) {
		return 0, due.Sub(now), nil
	}
	if first.err != nil {
		return 0, 0, first.err
	}
	n = copy(b, first.data)
	first.data = first.data[n:]
	if len(first.data) == 0 {
		p.chunks = p.chunks[1:]
	}
	return n, 0, nil
}

// fail gives the reader an error at once, whatever has arrived.
func (p *pipe) fail(err error) {
	if p.broken == nil {
		p.broken = err
	}
	p.lost = true
	p.signal()
}

// cut ends the pipe with an error. What has arrived can still be read, also by a process
// that has stopped. keep gets the number of bytes that are under way, and returns the
// number that still arrives.
func (p *pipe) cut(now time.Time, keep func(bytes int) int) {
	if !p.lost {
		arrived := 0
		for arrived < len(p.chunks) && p.arrived(p.chunks[arrived], now) {
			arrived++
		}
		under := 0
		for _, c := range p.chunks[arrived:] {
			under += len(c.data)
		}
		left := keep(under)
		for i := arrived; i < len(p.chunks); i++ {
			c := &p.chunks[i]
			c.data = c.data[:min(left, len(c.data))]
			c.due = now
			left -= len(c.data)
		}
		for len(p.chunks) > 0 && len(p.chunks[len(p.chunks)-1].data) == 0 {
			p.chunks = p.chunks[:len(p.chunks)-1]
		}
		// Nothing is held back behind a broken connection.
		p.cutOff = time.Time{}
		p.chunks = append(p.chunks, chunk{due: now, err: errReset})
		p.last, p.lost = now, true
	}
	p.signal()
}

func (p *pipe) arrived(c chunk, now time.Time) bool {
	return !c.due.After(now) && (p.cutOff.IsZero() || c.due.Before(p.cutOff))
}

// hold makes the network swallow what has not arrived yet. release sends it again, to
// arrive not before from.
func (p *pipe) hold(now time.Time) {
	if p.cutOff.IsZero() {
		p.cutOff = now
	}
}

func (p *pipe) release(from time.Time) {
	for i := range p.chunks {
		if c := &p.chunks[i]; !p.cutOff.IsZero() && !c.due.Before(p.cutOff) && c.due.Before(from) {
			c.due = from
		}
	}
	if !p.cutOff.IsZero() && p.last.Before(from) {
		p.last = from
	}
	p.cutOff = time.Time{}
	p.signal()
}

// pause stops the reader, whose buffers go on filling. resume lets it read on from the
// given time.
func (p *pipe) pause() {
	p.paused = true
}

func (p *pipe) resume(from time.Time) {
	p.paused, p.from = false, from
	p.signal()
}
