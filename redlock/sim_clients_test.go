package redlock

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	check "redlock-proxy/integration/history"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/sim"
)

// A simClient takes one lock again and again, through one proxy at a time. It is honest:
// it uses the lock only while that is valid, and deletes only a lock that it certainly
// holds.
type simClient struct {
	s      *simulation
	name   string
	key    simKey
	number uint64
	random *rand.Rand // of this round
	tokens int
	token  string // of the next attempt; "": a new one

	lock    []byte // of this round
	proxy   *simProxy
	process int // the proxy's process that this client is connected to
	stuck   int // rounds in which nobody seemed to hold the lock, and nobody could take it
}

// deletable is the validity that must be left for a plain DEL: the time of a look and of
// another client's ballot. A late DEL deletes another client's lock, on a single Redis,
// too.
const deletable = 110 * time.Millisecond

func (s *simulation) newClient(index int, k simKey, number int) *simClient {
	return &simClient{
		s:      s,
		name:   fmt.Sprintf("c%d.%d", index, number),
		key:    k,
		number: uint64(index*100 + number + 1),
	}
}

func (c *simClient) chance(percent int) bool { return c.random.IntN(100) < percent }

func (c *simClient) sleep(most time.Duration) {
	c.s.sleep(between(c.random, time.Microsecond, most))
}

// connect picks the proxy for the next round.
func (c *simClient) connect() *Locker {
	i := c.key.proxy
	if i < 0 {
		i = int(sim.Hash(uint64(c.name[1]), uint64(c.name[3])) % uint64(len(c.s.proxies)))
		if c.chance(10) {
			i = c.random.IntN(len(c.s.proxies))
		}
	}
	c.proxy = c.s.proxies[i]
	c.lock = c.key.current()
	c.process = c.proxy.runs
	return c.proxy.lock
}

// ask makes a request to the client's proxy, on a task of the proxy's loop. Only Acquire and Run do
// without a goroutine of their own.
func (c *simClient) ask(ctx context.Context, request func(ctx context.Context) Outcome) (o Outcome) {
	return c.askOnLoop(ctx, func(ctx context.Context) Outcome {
		loop.FromContext(ctx).Leave()
		return request(ctx)
	})
}

func (c *simClient) askOnLoop(ctx context.Context, request func(ctx context.Context) Outcome) (o Outcome) {
	answered := make(chan struct{})
	c.proxy.loop.Go(func(t *loop.Task) (rests bool) {
		defer close(answered)
		o = request(loop.NewContext(ctx, t))
		return false
	})
	c.s.world.Wait(loop.Forever, answered)
	return o
}

// connected is false if the client's proxy has crashed.
func (c *simClient) connected() bool { return c.proxy.runs == c.process }

func (c *simClient) newToken() string {
	c.tokens++
	if c.key.style == constantValue || c.key.style == constantNoTTL {
		return short
	}
	return fmt.Sprintf("%s has this as token %d", c.name, c.tokens)
}

// run plays one round after the other. Each draws from a seed of its own, and begins no earlier
// than in the whole history. So the others stay nearly the same if one is left out.
func (c *simClient) run() {
	for n := 1; !c.s.isOver(); n++ {
		round := fmt.Sprintf("%s round %d", c.name, n)
		c.random = rand.New(rand.NewPCG(sim.Hash(c.s.seed, c.number), uint64(n)))
		if n == 1 {
			c.sleep(20 * time.Millisecond)
		}
		if !c.s.cut.awaits(c.s, round) {
			return
		}
		c.s.rounds[round] = time.Since(c.s.began)
		if !c.s.cut.leavesOut(round) {
			c.round()
		}
	}
}

func (c *simClient) round() {
	proxy, process := c.proxy, c.process
	l := c.connect()
	switch c.key.style {
	case legacy:
		c.legacyRound(l)
		return
	case counting:
		c.countUp(l)
		c.pause()
		return
	}
	// Many clients keep their token until they have the lock. To keep it through a
	// change of proxies is not safe: the first proxy may still have to undo it on some
	// master when the second is granted it.
	if c.token == "" || c.chance(20) || proxy != c.proxy || process != c.process {
		c.token = c.newToken()
	}
	if held := c.acquire(l, c.token); held != nil {
		c.work(l, held, c.token)
		c.token = ""
	}
	c.pause()
}

func (c *simClient) pause() {
	if c.chance(20) {
		c.sleep(300 * time.Millisecond)
	} else {
		c.sleep(30 * time.Millisecond)
	}
}

// ttl is the TTL of the next acquire. 0: none.
func (c *simClient) ttl() time.Duration {
	switch c.key.style {
	case noTTL, constantNoTTL, expireAfterwards, legacy:
		return 0
	}
	return c.key.ttl.Truncate(time.Millisecond)
}

func (c *simClient) acquire(l *Locker, token string) *check.Hold {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c.chance(5) {
		leaves := c.s.world.After(between(c.random, time.Microsecond, 20*time.Millisecond), cancel)
		defer leaves.Cancel()
	}
	ttl := c.ttl()
	var o Outcome
	how := "SET"
	if c.key.style == scripted && c.chance(50) {
		how = "EVAL"
		o = c.askOnLoop(ctx, func(ctx context.Context) Outcome {
			return l.Run(ctx, RunRequest{
				Keys: [][]byte{c.lock},
				Args: [][]byte{[]byte("EVAL"), []byte(takeIfFree), []byte("1"), c.lock, []byte(token), resp.Decimal(ttl.Milliseconds())},
			})
		})
		if o.Verdict == Won && string(o.Reply) != ":1\r\n" {
			o.Verdict = Lost
		}
	} else {
		r := AcquireRequest{Key: c.lock, Value: []byte(token), TTL: ttl, Get: c.chance(10)}
		asked := c.s.trace.asks(token)
		o = c.askOnLoop(ctx, func(ctx context.Context) Outcome { return l.Acquire(ctx, r) })
		asked(o)
	}
	c.s.log.tell(c, "%s through %s: %v", how, c.proxy.name, o.Verdict)
	c.note(o)
	if o.Verdict != Won || !c.connected() {
		return nil
	}
	return c.s.history.begin(string(c.lock), c.name, how+" "+token, c.end(l, ttl, o))
}

func (c *simClient) note(o Outcome) {
	if o.Verdict == NoQuorum {
		defer c.sleep(80 * time.Millisecond)
	}
	c.s.history.count(func(n *simCounts) {
		switch o.Verdict {
		case Won:
			n.won++
		case Lost:
			n.lost++
		default:
			n.noQuorum++
		}
	})
}

// end is the time until which a lock that was just won may be relied on.
func (c *simClient) end(l *Locker, ttl time.Duration, won Outcome) time.Time {
	if ttl == 0 {
		return c.s.began.Add(time.Hour)
	}
	return time.Now().Add(l.box.Validity(ttl, time.Since(won.Since)))
}

// work holds the lock for a while, maybe extends it, and releases it.
func (c *simClient) work(l *Locker, held *check.Hold, token string) {
	if c.key.style == expireAfterwards {
		c.extend(l, held, c.key.ttl.Truncate(time.Millisecond))
	}
	for {
		if c.chance(60) {
			c.sleep(20 * time.Millisecond)
		} else {
			c.sleep(max(time.Millisecond, min(c.key.ttl, 400*time.Millisecond)))
		}
		if !c.connected() {
			if c.key.style.expires() || c.key.style == expireAfterwards {
				held.To = earlier(held.To, time.Now())
				return
			}
			l = c.connect() // the lock is not bound to the connection
		}
		if c.key.style.expires() && c.chance(12) {
			return // the client lets the lock expire
		}
		if c.key.style == noTTL || c.key.style == constantNoTTL || c.s.trace != nil || !c.chance(25) || !time.Now().Before(held.To) {
			break
		}
		ttl := c.key.ttl
		if c.chance(50) {
			ttl = c.key.longest
		}
		c.extend(l, held, ttl.Truncate(time.Millisecond))
	}
	c.release(l, held, token)
}

// extend moves the end of a holding. While nobody knows whether it succeeded, the earlier
// of the two ends counts.
func (c *simClient) extend(l *Locker, held *check.Hold, ttl time.Duration) {
	before := held.To
	held.To = earlier(held.To, time.Now().Add(l.box.Validity(ttl, 0)))
	o := c.ask(context.Background(), func(ctx context.Context) Outcome {
		return l.Extend(ctx, ExtendRequest{Key: c.lock, TTL: ttl})
	})
	c.s.log.tell(c, "extends by %v through %s: %v", ttl, c.proxy.name, o.Verdict)
	if o.Verdict == Won && time.Now().Before(before) && c.connected() {
		held.To = c.end(l, ttl, o)
		c.s.history.count(func(n *simCounts) { n.extended++ })
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (c *simClient) release(l *Locker, held *check.Hold, token string) {
	left := time.Until(held.To)
	if left <= 0 {
		return
	}
	held.To = time.Now()
	run := func(r RunRequest) func(context.Context) Outcome {
		return func(ctx context.Context) Outcome { return l.Run(ctx, r) }
	}
	var o Outcome
	if c.key.style == scripted {
		o = c.askOnLoop(context.Background(), run(RunRequest{
			Keys: [][]byte{c.lock},
			Args: [][]byte{[]byte("EVAL"), []byte(compareAndDelete), []byte("1"), c.lock, []byte(token)},
		}))
	} else if c.s.deletes && left > deletableByRun {
		o = c.askOnLoop(context.Background(), run(c.deletion()))
	} else if left > deletable {
		c.s.trace.releases(token)
		o = c.ask(context.Background(), func(ctx context.Context) Outcome { return l.Release(ctx, ReleaseRequest{Key: c.lock}) })
	}
	c.s.log.tell(c, "releases through %s: %v", c.proxy.name, o.Verdict)
	if o.Verdict == Won {
		c.s.history.count(func(n *simCounts) { n.released++ })
	} else if !c.key.style.expires() {
		c.abandon()
	}
}

// abandon leaves a lock without TTL as it is, and goes on with another lock.
func (c *simClient) abandon() {
	if string(c.lock) == string(c.key.current()) {
		*c.key.round++
	}
	c.stuck = 0
}

// legacyRound is the lock of Redis's old SETNX page. Its value is the time until which it
// is held. A client that finds that time over takes the lock with GETSET. The digits after
// the milliseconds are different for each client.
func (c *simClient) legacyRound(l *Locker) {
	defer c.pause()
	stamp := func() (string, time.Time) {
		c.tokens++
		end := time.Now().Add(c.key.ttl + 300*time.Millisecond)
		return fmt.Sprintf("%d%s%s%04d", end.UnixMilli(), c.name[1:2], c.name[3:4], c.tokens), end
	}
	value, end := stamp()
	o := c.askOnLoop(context.Background(), func(ctx context.Context) Outcome {
		return l.Acquire(ctx, AcquireRequest{Key: c.lock, Value: []byte(value)})
	})
	c.note(o)
	if o.Verdict == Lost {
		seen := c.ask(context.Background(), func(ctx context.Context) Outcome { return l.Get(ctx, 0, c.lock) })
		if seen.Verdict == Lost {
			// Writes that crossed may have left no value on a quorum, until the copies are made equal.
			if c.stuck++; c.stuck > 20 {
				c.abandon()
			}
		}
		if seen.Verdict != Won || !past(seen.Value) {
			return
		}
		value, end = stamp()
		o = c.ask(context.Background(), func(ctx context.Context) Outcome {
			return l.Run(ctx, RunRequest{Keys: [][]byte{c.lock}, Args: bytesOf([]string{"GETSET", string(c.lock), value})})
		})
		if old, is := resp.ParseBulk(o.Reply); o.Verdict != Won || is && !bytes.Equal(old, seen.Value) {
			return
		}
		c.s.history.count(func(n *simCounts) { n.gotBy++ })
	}
	// After two racing GETSETs the second one's time stays, which may be the earlier time,
	// also on a single Redis. So no client uses the lock to its last moment.
	if end = end.Add(-300 * time.Millisecond); o.Verdict != Won || !c.connected() || !time.Now().Before(end) {
		return
	}
	held := c.s.history.begin(string(c.lock), c.name, "GETSET "+value, end)
	c.sleep(c.key.ttl)
	if c.connected() && !c.chance(30) {
		c.release(l, held, value)
	}
}

// past tells whether the time of a legacy lock is over.
func past(value []byte) bool {
	if len(value) < 6 {
		return false
	}
	ms, err := strconv.ParseInt(string(value[:len(value)-6]), 10, 64)
	return err == nil && time.Now().UnixMilli() > ms
}
