package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A lockStyle is how a kind of application locks. Each function tells whether
// it was granted; an error means that nobody knows.
type lockStyle struct {
	name string
	key  string
	db   int
	// proxy is the only one it goes through; -1: any, another each time. An
	// application that stores the same value in every lock, and so cannot tell
	// its own lock from another's, is safe with one proxy and while that lives.
	proxy   int
	acquire func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error)
	extend  func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error)
	release func(ctx context.Context, c *redis.Client, key, token string) (bool, error)
}

const (
	// constantProxy is the proxy of the applications that store a constant.
	constantProxy = 2
	// otherDatabase is where some of the locks are: what a master remembers is
	// judged for each database by itself.
	otherDatabase = 3
)

var lockStyles = []lockStyle{
	{
		// The lock of most libraries: a random value, scripts that compare it.
		name: "token", key: "lock:shared", proxy: -1,
		acquire: acquire,
		extend:  scripted(extendScripts["pexpire"], 1),
		release: releasing(releaseScripts["one line"], 1),
	},
	{
		// The same key, another habit: a script that acquires, and replies that
		// are the other way round, as python-redis-lock's.
		name: "script", key: "lock:shared", proxy: -1,
		acquire: scripted(acquireScripts["setnx and pexpire"], 1),
		extend: scripted(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
if redis.call('ttl', KEYS[1]) < 0 then return 2 end
redis.call('pexpire', KEYS[1], ARGV[2])
return 0`, 0),
		release: func(ctx context.Context, c *redis.Client, key, token string) (bool, error) {
			n, err := signallingRelease.Run(ctx, c, []string{key, "lock-signal:shared"}, token, 1000).Int()
			return n == 0, err
		},
	},
	{
		// Redisson: a hash of holders.
		name: "hash", key: "lock:hash", db: otherDatabase, proxy: -1,
		acquire: func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error) {
			err := hashTake.Run(ctx, c, []string{key}, ttl.Milliseconds(), token).Err()
			if errors.Is(err, redis.Nil) {
				return true, nil
			}
			return false, err
		},
		extend: func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error) {
			answers, err := hashKeep.Run(ctx, c, []string{key}, ttl.Milliseconds(), token).Int64Slice()
			return err == nil && answers[0] == 1, err
		},
		release: func(ctx context.Context, c *redis.Client, key, token string) (bool, error) {
			n, err := hashGive.Run(ctx, c, []string{key, "redisson_lock__channel:{" + key + "}"}, 0, 1000, token).Int()
			if errors.Is(err, redis.Nil) {
				return false, nil
			}
			return n == 1, err
		},
	},
	{
		name: "constant", key: "lock:constant", proxy: constantProxy,
		acquire: func(ctx context.Context, c *redis.Client, key, _ string, ttl time.Duration) (bool, error) {
			return acquire(ctx, c, key, "1", ttl)
		},
		extend: func(ctx context.Context, c *redis.Client, key, _ string, ttl time.Duration) (bool, error) {
			return c.PExpire(ctx, key, ttl).Result()
		},
		release: func(ctx context.Context, c *redis.Client, key, _ string) (bool, error) {
			n, err := c.Del(ctx, key).Result()
			return n == 1, err
		},
	},
	fairStyle,
}

// wideStyles are the styles, each for as many locks as CAMPAIGN_WIDTH says.
func wideStyles(t testing.TB) (wide []lockStyle) {
	t.Helper()
	for i := range campaignNumber(t, "CAMPAIGN_WIDTH", 1) {
		for _, style := range lockStyles {
			if i > 0 {
				style.key += fmt.Sprintf(":%d", i)
			}
			wide = append(wide, style)
		}
	}
	return wide
}

var (
	hashTake, hashKeep, hashGive = redis.NewScript(hashLock), redis.NewScript(hashRenew), redis.NewScript(hashUnlock)

	signallingRelease = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
redis.call('del', KEYS[2])
redis.call('lpush', KEYS[2], 1)
redis.call('pexpire', KEYS[2], ARGV[2])
redis.call('del', KEYS[1])
return 0`)
)

// scripted is a script that is told the token and the time, and answers so if
// it was granted.
func scripted(text string, granted int) func(context.Context, *redis.Client, string, string, time.Duration) (bool, error) {
	script := redis.NewScript(text)
	return func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error) {
		n, err := script.Run(ctx, c, []string{key}, token, ttl.Milliseconds()).Int()
		return n == granted, err
	}
}

func releasing(text string, granted int) func(context.Context, *redis.Client, string, string) (bool, error) {
	run := scripted(text, granted)
	return func(ctx context.Context, c *redis.Client, key, token string) (bool, error) {
		return run(ctx, c, key, token, 0)
	}
}

// A campaignClient locks and unlocks until the campaign is over.
type campaignClient struct {
	id       int
	style    lockStyle
	proxies  []*redis.Client // connections to each, in the style's database
	register *register
	began    time.Time
	random   *rand.Rand
	calls    []lockCall
	errors   map[string]int // how often what was answered with which error
	granted  atomic.Int64   // how many acquires
}

const (
	// Leases are not longer than restart_delay, for which a master that has
	// forgotten its locks is kept from voting; some are nearly as long, and longer
	// than it takes a proxy to start.
	shortestLease = 500 * time.Millisecond
	longestLease  = 2500 * time.Millisecond
	// shortStay is how long most of them hold a lock at most.
	shortStay = 50 * time.Millisecond
	// unsureRest is by how much longer a client pauses after an error: the proxies
	// shall not be busy with errors when there is something to break.
	unsureRest = 5
	// answerWait is how long a client waits for an answer, longer than ballots
	// take and shorter than proxies are paused.
	answerWait = time.Second
)

func (c *campaignClient) run(over context.Context) {
	for turn := 0; over.Err() == nil; turn++ {
		token := fmt.Sprintf("client-%02d-turn-%08d", c.id, turn)
		ttl := between(c.random, shortestLease, longestLease)
		taken := c.ask(askAcquire, token, ttl)
		switch {
		case taken.answer == yes:
			c.hold(over, token, taken)
		case taken.answer == unsure && c.style.proxy < 0:
			// The published algorithm: what may have been acquired is released.
			// Who cannot tell his lock from another's must not.
			c.ask(askRelease, token, 0)
		}
		rest := between(c.random, 5*time.Millisecond, 40*time.Millisecond)
		if taken.answer == unsure {
			rest *= unsureRest
		}
		pause(over, rest)
	}
}

// hold acts on a granted lock for some time, within what its lease allows but
// for the holders that overstay, and releases it but for those that die.
func (c *campaignClient) hold(over context.Context, token string, taken lockCall) {
	until := taken.begin + taken.ttl - lostToDrift(taken.ttl)
	if taken.end >= until {
		return // the grant came too late to be of use
	}
	h := c.register.enter(c.id, token, c.began.Add(until))
	defer c.register.leave(h)
	stay := between(c.random, 0, shortStay)
	switch c.random.IntN(30) {
	case 0:
		c.overstay(h, until)
		return
	case 1:
		c.register.write(h)
		return // it dies
	case 2, 3:
		stay = between(c.random, 0, 2*longestLease)
	}
	for left := time.Now().Add(stay); over.Err() == nil && time.Now().Before(left); {
		pause(over, min(time.Until(left), between(c.random, time.Millisecond, 100*time.Millisecond)))
		if c.left(until) > 0 {
			c.register.write(h)
		}
		if left := c.left(until); left < taken.ttl/2 && (left > taken.ttl/4 || c.style.proxy < 0) {
			if kept := c.ask(askExtend, token, taken.ttl); kept.answer == yes {
				until = max(until, kept.begin+kept.ttl-lostToDrift(kept.ttl))
				c.register.extend(h, c.began.Add(until))
			}
		}
		if c.left(until) <= 0 {
			break
		}
	}
	// Who cannot tell his lock from another's must not release it late.
	if c.style.proxy < 0 || c.left(until) > taken.ttl/4 {
		c.register.leave(h)
		c.ask(askRelease, token, 0)
	}
}

// overstay pauses beyond the lease, as a process does whose machine swaps, and
// then writes. Nothing but the register can stop that.
func (c *campaignClient) overstay(h *holder, until time.Duration) {
	time.Sleep(c.left(until) + between(c.random, 0, shortestLease))
	c.register.write(h)
}

func (c *campaignClient) left(until time.Duration) time.Duration { return until - time.Since(c.began) }

// ask asks one thing through a proxy and notes it.
func (c *campaignClient) ask(what lockQuestion, token string, ttl time.Duration) lockCall {
	proxy := c.style.proxy
	if proxy < 0 {
		proxy = c.random.IntN(len(c.proxies))
	}
	// Not the campaign's context: what is asked at its end is still answered.
	ctx, cancel := context.WithTimeout(context.Background(), answerWait)
	defer cancel()
	call := lockCall{
		client: c.id, proxy: proxy, key: c.style.key, token: token, asked: what,
		ttl: ttl, begin: time.Since(c.began),
	}
	var granted bool
	var err error
	switch client := c.proxies[proxy]; what {
	case askAcquire:
		granted, err = c.style.acquire(ctx, client, c.style.key, token, ttl)
	case askExtend:
		granted, err = c.style.extend(ctx, client, c.style.key, token, ttl)
	case askRelease:
		granted, err = c.style.release(ctx, client, c.style.key, token)
	}
	call.end, call.answer = time.Since(c.began), answerOf(granted, err)
	if err != nil {
		c.errors[fmt.Sprintf("%s: %s", what, kindOf(err))]++
	}
	c.calls = append(c.calls, call)
	if what == askAcquire && call.answer == yes {
		c.granted.Add(1)
	}
	return call
}

// kindOf is what an error says, but for its numbers and addresses, so that they
// can be counted.
func kindOf(err error) string {
	kind, _, _ := strings.Cut(anyNumber.ReplaceAllString(err.Error(), "#"), ";")
	return kind
}

var anyNumber = regexp.MustCompile("[0-9][0-9.:]*")

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}
