package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// This is the lock code of TestHandwrittenLocks, as applications write it.

var (
	setnxExpireNumbers = redis.NewScript(`
if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
else
  return 0
end`)
	setnxExpireBooleans = redis.NewScript(
		`if redis.call("SETNX",KEYS[1],ARGV[1]) == 1 then redis.call("PEXPIRE",KEYS[1],ARGV[2]); return true else return false end`)
	deleteBooleans = redis.NewScript(
		`if redis.call("GET",KEYS[1]) == ARGV[1] then redis.call("DEL",KEYS[1]); return true end return false`)
	renewOwn = redis.NewScript(
		`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end`)
	takeBoth = redis.NewScript(`
if redis.call('exists', KEYS[1], KEYS[2]) > 0 then return false end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
redis.call('set', KEYS[2], ARGV[1], 'px', ARGV[2])
return true`)
	giveBoth = redis.NewScript(`
local n = 0
for _, key in ipairs(KEYS) do
  if redis.call('get', key) == ARGV[1] then n = n + redis.call('del', key) end
end
return n == #KEYS`)
)

const (
	enterCounted = `
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return tonumber(redis.call('hget', KEYS[1], ARGV[1]))
end
return 0`
	leaveCounted = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return -1 end
local left = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if left == 0 then redis.call('del', KEYS[1]) else redis.call('pexpire', KEYS[1], ARGV[2]) end
return left`
)

var handwrittenLocks = map[string]handwritten{
	"SETNX, EXPIRE, DEL": {keys: []string{"lock:setnx"}, holder: func(client *redis.Client, _ string) rig.Contender {
		return rig.Contender{
			Take: func(ctx context.Context) (bool, error) {
				ok, err := client.Do(ctx, "SETNX", "lock:setnx", "locked").Bool()
				if ok && err == nil {
					err = client.Expire(ctx, "lock:setnx", time.Minute).Err()
				}
				return ok, err
			},
			Give: deleteOne(client, "lock:setnx"),
		}
	}},
	"SET NX EX of a constant, DEL": {keys: []string{"lock:constant"}, holder: func(client *redis.Client, _ string) rig.Contender {
		return rig.Contender{
			Take: func(ctx context.Context) (bool, error) {
				return granted(client.Do(ctx, "set", "lock:constant", "1", "nx", "ex", 60))
			},
			Give: deleteOne(client, "lock:constant"),
		}
	}},
	"SET NX EX of a token, GET, DEL": {keys: []string{"lock:getdel"}, proxies: 2, holder: func(client *redis.Client, name string) rig.Contender {
		token := "token-of-" + name + "-000"
		return rig.Contender{
			Take: func(ctx context.Context) (bool, error) {
				return granted(client.Do(ctx, "SET", "lock:getdel", token, "EX", 60, "NX"))
			},
			Give: func(ctx context.Context) error {
				owner, err := client.Get(ctx, "lock:getdel").Result()
				if err = settledBy(owner == token, err); err != nil {
					return err
				}
				return deleteOne(client, "lock:getdel")(ctx)
			},
		}
	}},
	"SET NX EX of a token, EVAL": {keys: []string{"lock:eval"}, proxies: 2, holder: func(client *redis.Client, name string) rig.Contender {
		return rig.TokenContender(client, "lock:eval", name)
	}},
	"EVAL of SETNX and PEXPIRE, 1 and 0": {keys: []string{"lock:numbers"}, proxies: 2, holder: func(client *redis.Client, name string) rig.Contender {
		return tokenByScript(client, "lock:numbers", "token-of-"+name, setnxExpireNumbers)
	}},
	"EVAL of SETNX and PEXPIRE, true and false, RESP2": {keys: []string{"lock:booleans2"}, proxies: 2, protocol: 2,
		holder: func(client *redis.Client, name string) rig.Contender {
			return tokenByScript(client, "lock:booleans2", "token-of-"+name, setnxExpireBooleans)
		}},
	"EVAL of SETNX and PEXPIRE, true and false, RESP3": {keys: []string{"lock:booleans3"}, proxies: 2, protocol: 3,
		holder: func(client *redis.Client, name string) rig.Contender {
			return tokenByScript(client, "lock:booleans3", "token-of-"+name, setnxExpireBooleans)
		}},
	"a timestamp, GET, GETSET, DEL": {keys: []string{"lock:timestamp"}, holder: func(client *redis.Client, name string) rig.Contender {
		lock := &timestampLock{client: client, key: "lock:timestamp", id: int(crc32.ChecksumIEEE([]byte(name)) % 1_000_000)}
		return rig.Contender{Take: lock.take, Give: lock.give}
	}},
	"a watchdog": {keys: []string{"lock:watchdog"}, proxies: 2, holder: func(client *redis.Client, name string) rig.Contender {
		lock := newWatchdogLock(client, "lock:watchdog", name, time.Minute)
		lock.every = 2 * time.Millisecond // so short that renewals and releases coincide
		return rig.Contender{Take: lock.take, Give: lock.give}
	}},
	"a counter in a hash": {keys: []string{"lock:counter"}, proxies: 2, holder: func(client *redis.Client, name string) rig.Contender {
		run := func(ctx context.Context, script string) (int, error) {
			return client.Eval(ctx, script, []string{"lock:counter"}, "owner-"+name, handwrittenTTL).Int()
		}
		return rig.Contender{
			Take: func(ctx context.Context) (bool, error) {
				n, err := run(ctx, enterCounted)
				return n == 1, err
			},
			Give: func(ctx context.Context) error {
				for _, step := range []struct {
					script string
					want   int
				}{{enterCounted, 2}, {leaveCounted, 1}, {leaveCounted, 0}} {
					if n, err := run(ctx, step.script); n != step.want || err != nil {
						return fmt.Errorf("the holder's counter is %d, want %d (%w)", n, step.want, err)
					}
				}
				return nil
			},
		}
	}},
	"two keys by one script": {keys: []string{"lock:both:1", "lock:both:2"}, proxies: 2, holder: func(client *redis.Client, name string) rig.Contender {
		keys := []string{"lock:both:1", "lock:both:2"}
		return rig.Contender{
			Take: func(ctx context.Context) (bool, error) {
				return evalBool(ctx, client, takeBoth, keys, "token-of-"+name, handwrittenTTL)
			},
			Give: func(ctx context.Context) error {
				return settledBy(evalBool(ctx, client, giveBoth, keys, "token-of-"+name))
			},
		}
	}},
	"two locks in order": {keys: []string{"lock:outer", "lock:inner"}, proxies: 2, holder: func(client *redis.Client, name string) rig.Contender {
		outer, inner := rig.TokenContender(client, "lock:outer", name+"-outer"), rig.TokenContender(client, "lock:inner", name+"-inner")
		return rig.Contender{
			Take: func(ctx context.Context) (bool, error) {
				if ok, err := outer.Take(ctx); !ok || err != nil {
					return false, err
				}
				ok, err := inner.Take(ctx)
				if !ok || err != nil {
					return false, errors.Join(err, outer.Give(ctx))
				}
				return true, nil
			},
			Give: func(ctx context.Context) error { return errors.Join(inner.Give(ctx), outer.Give(ctx)) },
		}
	}},
}

// granted reads the reply to SET: OK if granted, nil if refused.
func granted(reply *redis.Cmd) (bool, error) {
	if errors.Is(reply.Err(), redis.Nil) {
		return false, nil
	}
	return reply.Err() == nil, reply.Err()
}

// deleteOne releases a lock without checking its owner.
func deleteOne(client *redis.Client, key string) func(context.Context) error {
	return func(ctx context.Context) error {
		n, err := client.Del(ctx, key).Result()
		return settledBy(n == 1, err)
	}
}

func tokenByScript(client *redis.Client, key, token string, take *redis.Script) rig.Contender {
	return rig.Contender{
		Take: func(ctx context.Context) (bool, error) {
			return evalBool(ctx, client, take, []string{key}, token, handwrittenTTL)
		},
		Give: func(ctx context.Context) error {
			return settledBy(evalBool(ctx, client, deleteBooleans, []string{key}, token))
		},
	}
}

// timestampLock is the lock of the old SETNX page. Its value is the time at which it
// expires, in seconds. A client that finds it expired puts in its own time by GETSET.
type timestampLock struct {
	client *redis.Client
	key    string
	id     int // makes its times different from other clients'
	until  string
}

func (l *timestampLock) take(ctx context.Context) (bool, error) {
	l.until = fmt.Sprintf("%d.%06d", time.Now().Add(time.Minute).Unix(), l.id)
	if ok, err := l.client.Do(ctx, "SETNX", l.key, l.until).Bool(); ok || err != nil {
		return ok, err
	}
	found, err := l.client.Get(ctx, l.key).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil // released meanwhile; the caller tries again
	}
	if over, err := isOver(found, err); !over || err != nil {
		return false, err
	}
	old, err := l.client.Do(ctx, "GETSET", l.key, l.until).Text()
	if errors.Is(err, redis.Nil) {
		return true, nil // released meanwhile: the GETSET took it
	}
	return isOver(old, err)
}

func isOver(stamp string, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	until, err := strconv.ParseFloat(stamp, 64)
	return until < float64(time.Now().Unix()), err
}

// give deletes the lock unless it has expired.
func (l *timestampLock) give(ctx context.Context) error {
	if over, err := isOver(l.until, nil); over || err != nil {
		return err
	}
	return deleteOne(l.client, l.key)(ctx)
}

// watchdogLock renews its lock until stop.
type watchdogLock struct {
	client     *redis.Client
	key, token string
	ttl, every time.Duration
	end, ended chan struct{}
}

func newWatchdogLock(client *redis.Client, key, name string, ttl time.Duration) *watchdogLock {
	return &watchdogLock{client: client, key: key, token: "token-of-" + name, ttl: ttl, every: ttl / 5}
}

func (l *watchdogLock) take(ctx context.Context) (bool, error) {
	ok, err := granted(l.client.Do(ctx, "SET", l.key, l.token, "NX", "PX", l.ttl.Milliseconds()))
	if !ok || err != nil {
		return false, err
	}
	l.end, l.ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(l.ended)
		for {
			select {
			case <-l.end:
				return
			case <-time.After(l.every):
				_, _ = evalBool(ctx, l.client, renewOwn, []string{l.key}, l.token, l.ttl.Milliseconds())
			}
		}
	}()
	return true, nil
}

func (l *watchdogLock) stop() {
	close(l.end)
	<-l.ended
}

// give releases while the watchdog still runs, as a careless client does. A late renewal
// must not bring the lock back.
func (l *watchdogLock) give(ctx context.Context) error {
	held, err := evalBool(ctx, l.client, deleteBooleans, []string{l.key}, l.token)
	l.stop()
	return settledBy(held, err)
}
