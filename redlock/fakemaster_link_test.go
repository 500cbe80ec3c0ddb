package redlock

import (
	"context"
	"net"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/sim"
)

// A link is the network between one Locker and one fake master, with its faults. Delays
// depend only on the seed and the time, not on the order of goroutines, so a run can be
// repeated.
type link struct {
	name   string
	master *fakeMaster
	seed   uint64

	delay      time.Duration // each way...
	jitter     time.Duration // ...and up to this much more
	replyDelay time.Duration // replies only, for scripted timelines
	fate       fate          // of the next question
	blackhole  chan struct{} // nil: bytes pass; otherwise closed when they pass again
	conns      []*fakeConn
	dialled    int

	world *sim.World
	sent  func(c *fakeConn, bytes []byte) // what a Locker writes; nil: nobody asks
}

// A fate is what happens to the next bytes on a link.
type fate struct {
	kind  fateKind
	after time.Duration
}

type fateKind uint8

const (
	delivered     fateKind = iota
	questionLost           // the connection breaks, and the master never hears the question
	answerLost             // the connection breaks after the master has executed it
	answerWritten          // the master ends the connection behind its answer
)

func newLink(name string, m *fakeMaster, seed uint64, world *sim.World) *link {
	return &link{name: name, master: m, seed: seed, world: world}
}

// hash mixes numbers into one number that looks random (splitmix64).
func hash(numbers ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, n := range numbers {
		h += n + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

func (l *link) draw(purpose uint64, now time.Time) uint64 {
	return hash(l.seed, purpose, uint64(now.UnixNano()))
}

// arrival is the time at which bytes that are sent now reach the other side.
func (l *link) arrival(direction uint64, now time.Time) time.Time {
	d := l.delay
	if l.jitter > 0 {
		d += time.Duration(l.draw(direction, now) % uint64(l.jitter))
	}
	if direction == toProxy {
		d += l.replyDelay
	}
	return now.Add(d)
}

const (
	toMaster uint64 = iota + 1
	toProxy
	cutPrefix
	resumption
	retransmission
)

// dial connects to the master.
func (l *link) dial(ctx context.Context) (net.Conn, error) {
	l.dialled++
	hole := l.blackhole
	if hole != nil && l.wait(ctx, loop.Forever, hole) != 0 {
		return nil, ctx.Err()
	}
	now := time.Now()
	if l.wait(ctx, l.arrival(toMaster, now).Sub(now)); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c := &fakeConn{link: l, out: newPipe(l.world), in: newPipe(l.world)}
	if !l.master.accept(c) {
		return nil, errRefused
	}
	l.conns = append(l.conns, c)
	if l.blackhole != nil {
		c.out.hold(time.Now())
		c.in.hold(time.Now())
	}
	return c, nil
}

// wait is World.Wait, also for the end of ctx. The World moves time to its events only, so that end must
// be one.
func (l *link) wait(ctx context.Context, d time.Duration, on ...<-chan struct{}) int {
	if at, limited := ctx.Deadline(); limited {
		d = min(d, time.Until(at)+1)
	}
	return l.world.Wait(d, append(on, ctx.Done())...)
}

// cut breaks the open connections. What is under way is lost, except a part that depends
// on the seed.
func (l *link) cut() {
	now := time.Now()
	keep := func(bytes int) int { return int(l.draw(cutPrefix, now) % uint64(bytes+1)) }
	conns := l.conns
	l.conns = nil
	for _, c := range conns {
		// This order matters: a session that has read its end tells the proxy.
		c.in.cut(now, keep)
		c.out.cut(now, keep)
	}
}

// mute makes the network swallow everything without an error until unmute. Then both
// sides send again what did not arrive.
func (l *link) mute() {
	if l.blackhole != nil {
		return
	}
	l.blackhole = make(chan struct{})
	now := time.Now()
	for _, c := range l.conns {
		c.out.hold(now)
		c.in.hold(now)
	}
}

// abandon makes the network swallow everything on the open connections, for ever, like a
// firewall that has forgotten them. New connections work.
func (l *link) abandon() {
	for _, c := range l.conns {
		c.out.hold(time.Now())
		c.in.hold(time.Now())
	}
	l.conns = nil
}

func (l *link) unmute() {
	if l.blackhole == nil {
		return
	}
	close(l.blackhole)
	l.blackhole = nil
	now := time.Now()
	for i, c := range l.conns {
		// Bytes of old connections may arrive later than those of new ones.
		later := time.Duration(hash(l.draw(retransmission, now), uint64(i)) % uint64(50*time.Millisecond))
		c.out.release(now.Add(later))
		c.in.release(now.Add(later))
	}
}

// setDelay changes the time that bytes need.
func (l *link) setDelay(delay, jitter time.Duration) {
	l.delay, l.jitter = delay, jitter
}

func (l *link) setFate(f fate) {
	l.fate = f
}

// takeFate returns the link's fate and clears it, if it is of that kind.
func (l *link) takeFate(kind fateKind) (fate, bool) {
	if l.fate.kind != kind {
		return fate{}, false
	}
	f := l.fate
	l.fate = fate{}
	return f, true
}

// A fakeConn is the Locker's end of a connection.
type fakeConn struct {
	link    *link
	out, in *pipe
}

func (c *fakeConn) Read(b []byte) (int, error) {
	return c.in.read(b)
}

func (c *fakeConn) Write(b []byte) (int, error) {
	now := time.Now()
	if f, doomed := c.link.takeFate(questionLost); doomed {
		c.out.lost = true
		c.link.world.After(f.after, c.link.cut)
		return len(b), nil
	}
	if c.in.broken != nil {
		return 0, c.in.broken
	}
	if c.link.sent != nil {
		c.link.sent(c, b)
	}
	c.out.write(b, c.link.arrival(toMaster, now))
	return len(b), nil
}

// Close is like close(2): written bytes still arrive.
func (c *fakeConn) Close() error {
	now := time.Now()
	c.out.end(c.link.arrival(toMaster, now))
	c.in.fail(errClosed)
	return nil
}

func (c *fakeConn) LocalAddr() net.Addr              { return nil }
func (c *fakeConn) RemoteAddr() net.Addr             { return nil }
func (c *fakeConn) SetDeadline(time.Time) error      { return nil }
func (c *fakeConn) SetReadDeadline(time.Time) error  { return nil }
func (c *fakeConn) SetWriteDeadline(time.Time) error { return nil }

func (c *fakeConn) Take(p []byte) (int, error) { return c.in.takeAll(p) }
func (c *fakeConn) Tell(f func())              { c.in.tell(f) }
