package campaign

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

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// A lockStyle is the way in which a kind of application locks. Each function tells whether
// the call was granted. After an error nobody knows.
type lockStyle struct {
	name string
	key  string
	db   int
	// proxy is the only proxy that the application uses; -1: any, another one each time. An
	// application that stores the same value in every lock cannot tell its own lock from
	// another's. It is safe with one proxy, as long as that proxy runs.
	proxy   int
	acquire func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error)
	extend  func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error)
	release func(ctx context.Context, c *redis.Client, key, token string) (bool, error)
}

const (
	// constantProxy is the proxy of the applications that store a constant.
	constantProxy = 2
	// otherDatabase has some of the locks. The proxies judge a master's memory separately
	// for each database.
	otherDatabase = 3
)

var lockStyles = []lockStyle{
	{
		// The lock of most libraries: a random value, and scripts that compare it.
		name: "token", key: "lock:shared", proxy: -1,
		acquire: rig.Acquire,
		extend:  scripted(corpus.ExtendScripts["pexpire"], 1),
		release: releasing(corpus.ReleaseScripts["one line"], 1),
	},
	{
		// The same key with another habit: a script acquires, and the replies are inverted,
		// as python-redis-lock's are.
		name: "script", key: "lock:shared", proxy: -1,
		acquire: scripted(corpus.AcquireScripts["setnx and pexpire"], 1),
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
		// Redisson's lock: a hash of holders.
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
			return rig.Acquire(ctx, c, key, "1", ttl)
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

// wideStyles returns the styles, each for CAMPAIGN_WIDTH locks.
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
	hashTake, hashKeep, hashGive = redis.NewScript(corpus.HashLock), redis.NewScript(corpus.HashRenew), redis.NewScript(corpus.HashUnlock)

	signallingRelease = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
redis.call('del', KEYS[2])
redis.call('lpush', KEYS[2], 1)
redis.call('pexpire', KEYS[2], ARGV[2])
redis.call('del', KEYS[1])
return 0`)
)

// scripted makes a call of a script with the token and the time. The call was granted if the
// script answers granted.
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
	proxies  []*redis.Client // a client of each proxy, in the style's database
	register *history.Register
	began    time.Time
	random   *rand.Rand
	calls    []history.Call
	errors   map[string]int // the number of answers, by call and error
	granted  atomic.Int64   // the number of acquires
}

const (
	// Leases are not longer than restart_delay, for which a master that has forgotten its
	// locks may not vote. Some are nearly as long, and longer than the start of a proxy.
	shortestLease = 500 * time.Millisecond
	longestLease  = 2500 * time.Millisecond
	// unsureRest is the additional pause of a client after an error. The proxies must not be
	// busy with errors when there is something to break.
	unsureRest = 5
	// answerWait is the longest wait for an answer. It is longer than a ballot and shorter
	// than the pauses of proxies.
	answerWait = time.Second
)

func (c *campaignClient) run(over context.Context) {
	for turn := 0; over.Err() == nil; turn++ {
		token := fmt.Sprintf("client-%02d-turn-%08d", c.id, turn)
		ttl := rig.Between(c.random, shortestLease, longestLease)
		taken := c.ask(history.AskAcquire, token, ttl)
		switch {
		case taken.Answer == history.Yes:
			c.hold(over, token, taken)
		case taken.Answer == history.Unsure && c.style.proxy < 0:
			// The published algorithm: release a lock that may have been acquired. A client that
			// cannot tell its own lock from another's must not do so.
			c.ask(history.AskRelease, token, 0)
		}
		rest := rig.Between(c.random, 5*time.Millisecond, 40*time.Millisecond)
		if taken.Answer == history.Unsure {
			rest *= unsureRest
		}
		rig.Pause(over, rest)
	}
}

// hold acts on a granted lock for some time and then releases it. The time is within the
// lease, except for holders that overstay. Some holders die instead of releasing.
func (c *campaignClient) hold(over context.Context, token string, taken history.Call) {
	until := taken.Begin + taken.TTL - history.LostToDrift(taken.TTL)
	if taken.End >= until {
		return // the grant came too late to be of use
	}
	h := c.register.Enter(c.id, token, c.began.Add(until))
	defer c.register.Leave(h)
	stay := rig.Between(c.random, 0, history.ShortStay)
	switch c.random.IntN(30) {
	case 0:
		c.overstay(h, until)
		return
	case 1:
		c.register.Write(h)
		return // it dies
	case 2, 3:
		stay = rig.Between(c.random, 0, 2*longestLease)
	}
	for left := time.Now().Add(stay); over.Err() == nil && time.Now().Before(left); {
		rig.Pause(over, min(time.Until(left), rig.Between(c.random, time.Millisecond, 100*time.Millisecond)))
		if c.left(until) > 0 {
			c.register.Write(h)
		}
		if left := c.left(until); left < taken.TTL/2 && (left > taken.TTL/4 || c.style.proxy < 0) {
			if kept := c.ask(history.AskExtend, token, taken.TTL); kept.Answer == history.Yes {
				until = max(until, kept.Begin+kept.TTL-history.LostToDrift(kept.TTL))
				c.register.Extend(h, c.began.Add(until))
			}
		}
		if c.left(until) <= 0 {
			break
		}
	}
	// A client that cannot tell its own lock from another's must not release it late.
	if c.style.proxy < 0 || c.left(until) > taken.TTL/4 {
		c.register.Leave(h)
		c.ask(history.AskRelease, token, 0)
	}
}

// overstay pauses beyond the lease, as a process does on a machine that swaps, and then
// writes. Only the register can stop that write.
func (c *campaignClient) overstay(h *history.Holder, until time.Duration) {
	time.Sleep(c.left(until) + rig.Between(c.random, 0, shortestLease))
	c.register.Write(h)
}

func (c *campaignClient) left(until time.Duration) time.Duration { return until - time.Since(c.began) }

// ask makes one call through a proxy and records it.
func (c *campaignClient) ask(what history.Question, token string, ttl time.Duration) history.Call {
	proxy := c.style.proxy
	if proxy < 0 {
		proxy = c.random.IntN(len(c.proxies))
	}
	// This is not the campaign's context: a call made at its end still gets an answer.
	ctx, cancel := context.WithTimeout(context.Background(), answerWait)
	defer cancel()
	call := history.Call{
		Client: c.id, Proxy: proxy, Key: c.style.key, Token: token, Asked: what,
		TTL: ttl, Begin: time.Since(c.began),
	}
	var granted bool
	var err error
	switch client := c.proxies[proxy]; what {
	case history.AskAcquire:
		granted, err = c.style.acquire(ctx, client, c.style.key, token, ttl)
	case history.AskExtend:
		granted, err = c.style.extend(ctx, client, c.style.key, token, ttl)
	case history.AskRelease:
		granted, err = c.style.release(ctx, client, c.style.key, token)
	}
	call.End, call.Answer = time.Since(c.began), history.AnswerOf(granted, err)
	if err != nil {
		c.errors[fmt.Sprintf("%s: %s", what, kindOf(err))]++
	}
	c.calls = append(c.calls, call)
	if what == history.AskAcquire && call.Answer == history.Yes {
		c.granted.Add(1)
	}
	return call
}

// kindOf returns an error's text without its numbers and addresses, so that equal errors
// can be counted together.
func kindOf(err error) string {
	kind, _, _ := strings.Cut(anyNumber.ReplaceAllString(err.Error(), "#"), ";")
	return kind
}

var anyNumber = regexp.MustCompile("[0-9][0-9.:]*")
