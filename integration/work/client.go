package work

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// A client locks and unlocks until the work ends.
type client struct {
	work     *Work
	id       int
	style    Style
	keeps    bool // it extends its lock until the work ends
	register *history.Register
	random   *rand.Rand
	stays    atomic.Int32  // the place at which it locks; -1: another one each time
	granted  atomic.Int64  // the number of acquires
	session  *redis.Client // the connection of this turn, if each turn has its own

	mu       sync.Mutex
	calls    []history.Call
	failures []Failure
}

// A Failure is an answer that is an error.
type Failure struct {
	Err   error
	When  time.Time
	asked history.Question
	at    int
}

// unsureRest is the additional pause of a client after an error. The proxies must not be
// busy with errors when there is something to break.
const unsureRest = 5

func (c *client) run(over context.Context, token func(turn int) string) {
	for turn := 0; over.Err() == nil; turn++ {
		ttl := rig.Between(c.random, c.work.Shortest, c.work.Longest)
		if c.keeps {
			ttl *= 10
		}
		taken := c.ask(history.AskAcquire, token(turn), ttl)
		switch {
		case taken.Answer == history.Yes:
			c.hold(over, token(turn), taken)
		case taken.Answer == history.Unsure && !c.style.Constant:
			// The published algorithm: release a lock that may have been acquired. A client that
			// cannot tell its own lock from another's must not do so.
			c.ask(history.AskRelease, token(turn), 0)
		}
		if c.session != nil {
			c.session.Close()
			c.session = nil
		}
		rest := rig.Between(c.random, 5*time.Millisecond, 40*time.Millisecond)
		if taken.Answer == history.Unsure {
			rest *= unsureRest
		}
		rig.Pause(over, rest)
	}
}

// hold acts on a granted lock for some time and then releases it. The time is within the
// lease, except for careless holders: some overstay, and some die instead of releasing.
func (c *client) hold(over context.Context, token string, taken history.Call) {
	until := taken.Begin + taken.TTL - history.LostToDrift(taken.TTL)
	if taken.End >= until {
		return // the grant came too late to be of use
	}
	h := c.register.Enter(c.id, token, c.work.Began.Add(until))
	defer c.register.Leave(h)
	stay := rig.Between(c.random, 0, history.ShortStay)
	if c.keeps {
		stay = time.Hour
	} else if c.work.Careless {
		switch c.random.IntN(30) {
		case 0:
			c.overstay(h, until)
			return
		case 1:
			c.register.Write(h)
			return // it dies
		case 2, 3:
			stay = rig.Between(c.random, 0, 2*c.work.Longest)
		}
	}
	for left := time.Now().Add(stay); over.Err() == nil && time.Now().Before(left); {
		rig.Pause(over, min(time.Until(left), rig.Between(c.random, time.Millisecond, 100*time.Millisecond)))
		if c.left(until) > 0 {
			c.register.Write(h)
		}
		if left := c.left(until); left < taken.TTL/2 && (left > taken.TTL/4 || !c.style.Constant) {
			if kept := c.ask(history.AskExtend, token, taken.TTL); kept.Answer == history.Yes {
				until = max(until, kept.Begin+kept.TTL-history.LostToDrift(kept.TTL))
				c.register.Extend(h, c.work.Began.Add(until))
			}
		}
		if c.left(until) <= 0 {
			break
		}
	}
	// A client that cannot tell its own lock from another's must not release it late.
	if !c.style.Constant || c.left(until) > taken.TTL/4 {
		c.register.Leave(h)
		c.ask(history.AskRelease, token, 0)
	}
}

// overstay pauses beyond the lease, as a process does on a machine that swaps, and then
// writes. Only the register can stop that write.
func (c *client) overstay(h *history.Holder, until time.Duration) {
	time.Sleep(c.left(until) + rig.Between(c.random, 0, c.work.Shortest))
	c.register.Write(h)
}

func (c *client) left(until time.Duration) time.Duration { return until - time.Since(c.work.Began) }

// ask makes one call and records it.
func (c *client) ask(what history.Question, token string, ttl time.Duration) history.Call {
	at := int(c.stays.Load())
	if at < 0 {
		at = c.random.IntN(len(c.work.At))
	}
	// This is not the context of the work: a call made at its end still gets an answer.
	ctx, cancel := context.WithTimeout(context.Background(), c.work.Wait)
	defer cancel()
	call := history.Call{
		Client: c.id, Proxy: at, Key: c.style.Key, Token: token, Asked: what,
		TTL: ttl, Begin: time.Since(c.work.Began),
	}
	var granted bool
	var err error
	switch conn := c.connection(at); what {
	case history.AskAcquire:
		granted, err = c.style.Acquire(ctx, conn, c.style.Key, token, ttl)
	case history.AskExtend:
		granted, err = c.style.Extend(ctx, conn, c.style.Key, token, ttl)
	case history.AskRelease:
		granted, err = c.style.Release(ctx, conn, c.style.Key, token)
	}
	call.End, call.Answer = time.Since(c.work.Began), history.AnswerOf(granted, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failures = append(c.failures, Failure{err, time.Now(), what, at})
	}
	c.calls = append(c.calls, call)
	if what == history.AskAcquire && call.Answer == history.Yes {
		c.granted.Add(1)
		c.work.granted[at].Add(1)
	}
	return call
}

// connection returns what reaches a place: one connection pool for all turns and clients, or
// a connection of this turn.
func (c *client) connection(at int) *redis.Client {
	if !c.work.Sessions {
		return c.work.pools[c.style.DB][at]
	}
	if c.session == nil || c.session.Options().Addr != c.work.At[at] {
		if c.session != nil {
			c.session.Close()
		}
		c.session = connect(c.work.At[at], c.style.DB, 1)
	}
	return c.session
}

func connect(addr string, db, size int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, DB: db, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: size, DialerRetries: 1})
}
