package toymaster

import (
	"context"
	"net"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/sim"
)

// A Link is the network between one Locker and one toy master, with its faults. Delays
// depend only on the seed and the time, not on the order of goroutines, so a run can be
// repeated.
type Link struct {
	Name   string
	Master *Master
	seed   uint64

	Delay      time.Duration // each way...
	Jitter     time.Duration // ...and up to this much more
	ReplyDelay time.Duration // replies only, for scripted timelines
	fate       fate          // of the next question
	blackhole  chan struct{} // nil: bytes pass; otherwise closed when they pass again
	conns      []*Conn
	Dialled    int

	world *sim.World
	Sent  func(c *Conn, bytes []byte) // what a Locker writes; nil: nobody asks
}

// A fate is what happens to the next bytes on a link.
type fate struct {
	kind  fateKind
	after time.Duration
}

type fateKind uint8

const (
	delivered    fateKind = iota
	questionLost          // the connection breaks, and the master never hears the question
	answerLost            // the connection breaks after the master has executed it
)

func NewLink(name string, m *Master, seed uint64, world *sim.World) *Link {
	return &Link{Name: name, Master: m, seed: seed, world: world}
}

func (l *Link) draw(purpose uint64, now time.Time) uint64 {
	return sim.Hash(l.seed, purpose, uint64(now.UnixNano()))
}

// arrival is the time at which bytes that are sent now reach the other side.
func (l *Link) arrival(direction uint64, now time.Time) time.Time {
	d := l.Delay
	if l.Jitter > 0 {
		d += time.Duration(l.draw(direction, now) % uint64(l.Jitter))
	}
	if direction == toProxy {
		d += l.ReplyDelay
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

// Dial connects to the master.
func (l *Link) Dial(ctx context.Context) (net.Conn, error) {
	l.Dialled++
	hole := l.blackhole
	if hole != nil && l.wait(ctx, loop.Forever, hole) != 0 {
		return nil, ctx.Err()
	}
	now := time.Now()
	if l.wait(ctx, l.arrival(toMaster, now).Sub(now)); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c := &Conn{Link: l, out: newPipe(l.world), in: newPipe(l.world)}
	if !l.Master.accept(c) {
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
func (l *Link) wait(ctx context.Context, d time.Duration, on ...<-chan struct{}) int {
	if at, limited := ctx.Deadline(); limited {
		d = min(d, time.Until(at)+1)
	}
	return l.world.Wait(d, append(on, ctx.Done())...)
}

// Cut breaks the open connections. What is under way is lost, except a part that depends
// on the seed.
func (l *Link) Cut() {
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

// Mute makes the network swallow everything without an error until unmute. Then both
// sides send again what did not arrive.
func (l *Link) Mute() {
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

// Abandon makes the network swallow everything on the open connections, for ever, like a
// firewall that has forgotten them. New connections work.
func (l *Link) Abandon() {
	for _, c := range l.conns {
		c.out.hold(time.Now())
		c.in.hold(time.Now())
	}
	l.conns = nil
}

func (l *Link) Unmute() {
	if l.blackhole == nil {
		return
	}
	close(l.blackhole)
	l.blackhole = nil
	now := time.Now()
	for i, c := range l.conns {
		// Bytes of old connections may arrive later than those of new ones.
		later := time.Duration(sim.Hash(l.draw(retransmission, now), uint64(i)) % uint64(50*time.Millisecond))
		c.out.release(now.Add(later))
		c.in.release(now.Add(later))
	}
}

// SetDelay changes the time that bytes need.
func (l *Link) SetDelay(delay, jitter time.Duration) {
	l.Delay, l.Jitter = delay, jitter
}

// LoseQuestion loses the next question: the connection breaks after d, and the master never hears it.
func (l *Link) LoseQuestion(d time.Duration) { l.fate = fate{questionLost, d} }

// LoseAnswer loses the next answer: the connection breaks d after the master has executed the question.
func (l *Link) LoseAnswer(d time.Duration) { l.fate = fate{answerLost, d} }

// Deliver takes back what was to happen to the next question.
func (l *Link) Deliver() { l.fate = fate{} }

// takeFate returns the link's fate and clears it, if it is of that kind.
func (l *Link) takeFate(kind fateKind) (fate, bool) {
	if l.fate.kind != kind {
		return fate{}, false
	}
	f := l.fate
	l.fate = fate{}
	return f, true
}

// A Conn is the Locker's end of a connection.
type Conn struct {
	Link    *Link
	out, in *pipe
}

func (c *Conn) Read(b []byte) (int, error) {
	return c.in.read(b)
}

func (c *Conn) Write(b []byte) (int, error) {
	now := time.Now()
	if f, doomed := c.Link.takeFate(questionLost); doomed {
		c.out.lost = true
		c.Link.world.After(f.after, c.Link.Cut)
		return len(b), nil
	}
	if c.in.broken != nil {
		return 0, c.in.broken
	}
	if c.Link.Sent != nil {
		c.Link.Sent(c, b)
	}
	c.out.write(b, c.Link.arrival(toMaster, now))
	return len(b), nil
}

// Close is like close(2): written bytes still arrive.
func (c *Conn) Close() error {
	now := time.Now()
	c.out.end(c.Link.arrival(toMaster, now))
	c.in.fail(errClosed)
	return nil
}

func (c *Conn) LocalAddr() net.Addr              { return nil }
func (c *Conn) RemoteAddr() net.Addr             { return nil }
func (c *Conn) SetDeadline(time.Time) error      { return nil }
func (c *Conn) SetReadDeadline(time.Time) error  { return nil }
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

func (c *Conn) Take(p []byte) (int, error) { return c.in.takeAll(p) }
func (c *Conn) Tell(f func())              { c.in.tell(f) }
