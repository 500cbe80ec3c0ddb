package work

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// Fair has three keys: the lock, the queue of waiters, and the time until which each
// of them waits. An acquire deletes from the queue. So a script that deletes something is
// not a release here.
var Fair = Style{
	Name: "fair", Key: "lock:fair",
	Acquire: takeInTurn,
	Extend: func(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error) {
		answers, err := hashKeep.Run(ctx, c, []string{key}, ttl.Milliseconds(), token).Int64Slice()
		return err == nil && answers[0] == 1, err
	},
	Release: func(ctx context.Context, c *redis.Client, key, token string) (bool, error) {
		n, err := fairGive.Run(ctx, c, fairKeys(key), token, "free").Int()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		return n == 1, err
	},
}

const (
	// fairWait is the time for which the queue keeps a place for its owner.
	fairWait = 300 * time.Millisecond
	// fairTries is the number of tries of a client before it leaves the queue.
	fairTries = 4
	fairPause = 15 * time.Millisecond
)

func fairKeys(key string) []string {
	return []string{key, "redisson_lock_queue:{" + key + "}", "redisson_lock_timeout:{" + key + "}"}
}

// takeInTurn tries a few times, as a client does that waits for its turn. It leaves the queue
// if its turn does not come.
func takeInTurn(ctx context.Context, c *redis.Client, key, token string, ttl time.Duration) (bool, error) {
	for range fairTries {
		err := fairTake.Run(ctx, c, fairKeys(key), ttl.Milliseconds(), token, fairWait.Milliseconds(), time.Now().UnixMilli()).Err()
		if errors.Is(err, redis.Nil) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		rig.Pause(ctx, fairPause)
	}
	return false, fairLeave.Run(ctx, c, fairKeys(key)[1:], token).Err()
}

var (
	fairTake = redis.NewScript(`
while true do
  local first = redis.call('lindex', KEYS[2], 0)
  if first == false then break end
  local at = redis.call('zscore', KEYS[3], first)
  if at == false or tonumber(at) <= tonumber(ARGV[4]) then
    redis.call('zrem', KEYS[3], first)
    redis.call('lpop', KEYS[2])
  else break end
end
if redis.call('exists', KEYS[1]) == 0
  and (redis.call('exists', KEYS[2]) == 0 or redis.call('lindex', KEYS[2], 0) == ARGV[2]) then
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], ARGV[2])
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if redis.call('zscore', KEYS[3], ARGV[2]) == false then
  redis.call('zadd', KEYS[3], tonumber(ARGV[4]) + tonumber(ARGV[3]), ARGV[2])
  redis.call('rpush', KEYS[2], ARGV[2])
end
return redis.call('pttl', KEYS[1])`)

	fairLeave = redis.NewScript(`
redis.call('zrem', KEYS[2], ARGV[1])
return redis.call('lrem', KEYS[1], 0, ARGV[1])`)

	fairGive = redis.NewScript(`
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
redis.call('del', KEYS[1])
redis.call('publish', 'redisson_lock__channel:{' .. KEYS[1] .. '}:' .. ARGV[1], ARGV[2])
return 1`)
)
