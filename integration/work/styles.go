package work

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// A Style is the way in which a kind of application locks. Each function tells whether
// the call was granted. After an error nobody knows.
type Style struct {
	Name string
	Key  string
	DB   int
	// Constant: the application stores the same value in every lock, so it cannot tell its own
	// lock from another's. It is safe with one proxy, as long as that proxy runs. Work gives it
	// the last one.
	Constant bool
	Acquire  func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error)
	Extend   func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error)
	Release  func(ctx context.Context, c *redis.Client, key, token string) (bool, error)
}

// OtherDatabase has some of the locks. The proxies judge a master's memory separately
// for each database.
const OtherDatabase = 3

// Styles are all styles.
var Styles = []Style{
	{
		// The lock of most libraries: a random value, and scripts that compare it.
		Name: "token", Key: "lock:shared",
		Acquire: rig.Acquire,
		Extend:  scripted(corpus.ExtendScripts["pexpire"], 1),
		Release: releasing(corpus.ReleaseScripts["one line"], 1),
	},
	{
		// The same key with another habit: a script acquires, and the replies are inverted,
		// as python-redis-lock's are.
		Name: "script", Key: "lock:shared",
		Acquire: scripted(corpus.AcquireScripts["setnx and pexpire"], 1),
		Extend: scripted(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
if redis.call('ttl', KEYS[1]) < 0 then return 2 end
redis.call('pexpire', KEYS[1], ARGV[2])
return 0`, 0),
		Release: func(ctx context.Context, c *redis.Client, key, token string) (bool, error) {
			n, err := signallingRelease.Run(ctx, c, []string{key, "lock-signal:shared"}, token, 1000).Int()
			return n == 0, err
		},
	},
	{
		// Redisson's lock: a hash of holders.
		Name: "hash", Key: "lock:hash", DB: OtherDatabase,
		Acquire: func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error) {
			err := hashTake.Run(ctx, c, []string{key}, ttl.Milliseconds(), token).Err()
			if errors.Is(err, redis.Nil) {
				return true, nil
			}
			return false, err
		},
		Extend: func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error) {
			answers, err := hashKeep.Run(ctx, c, []string{key}, ttl.Milliseconds(), token).Int64Slice()
			return err == nil && answers[0] == 1, err
		},
		Release: func(ctx context.Context, c *redis.Client, key, token string) (bool, error) {
			n, err := hashGive.Run(ctx, c, []string{key, "redisson_lock__channel:{" + key + "}"}, 0, 1000, token).Int()
			if errors.Is(err, redis.Nil) {
				return false, nil
			}
			return n == 1, err
		},
	},
	{
		Name: "constant", Key: "lock:constant", Constant: true,
		Acquire: func(ctx context.Context, c *redis.Client, key, _ string, ttl time.Duration) (bool, error) {
			return rig.Acquire(ctx, c, key, "1", ttl)
		},
		Extend: func(ctx context.Context, c *redis.Client, key, _ string, ttl time.Duration) (bool, error) {
			return c.PExpire(ctx, key, ttl).Result()
		},
		Release: func(ctx context.Context, c *redis.Client, key, _ string) (bool, error) {
			n, err := c.Del(ctx, key).Result()
			return n == 1, err
		},
	},
	Fair,
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
