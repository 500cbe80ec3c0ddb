package corpus

import "slices"

// The scripts of this file do the same as Redisson's. A lock is a hash of its holders,
// with the number of times that each has entered. The reply nil means "acquired".

const (
	HashLock = `
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])`

	HashUnlock = `
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end
local left = redis.call('hincrby', KEYS[1], ARGV[3], -1)
if left > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1`

	hashUnlockLatched = `
local before = redis.call('get', KEYS[3])
if before ~= false then return tonumber(before) end
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end
local left = redis.call('hincrby', KEYS[1], ARGV[3], -1)
if left > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  redis.call('set', KEYS[3], 0, 'px', ARGV[5])
  return 0
end
redis.call('del', KEYS[1])
redis.call(ARGV[4], KEYS[2], ARGV[1])
redis.call('set', KEYS[3], 1, 'px', ARGV[5])
return 1`

	HashRenew = `
local answers = {}
for i = 1, #KEYS do
  if redis.call('hexists', KEYS[i], ARGV[i + 1]) == 1 then
    redis.call('pexpire', KEYS[i], ARGV[1])
    answers[i] = 1
  else
    answers[i] = 0
  end
end
return answers`

	hashForce = `if redis.call('del', KEYS[1]) == 1 then redis.call('publish', KEYS[2], ARGV[1]) return 1 end return 0`

	hashOnce = `
if redis.call('exists', KEYS[1]) == 0 then
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then return redis.error_reply(ARGV[3]) end
return redis.call('pttl', KEYS[1])`

	HashFenced = `
if redis.call('exists', KEYS[1]) == 0 then redis.call('incr', KEYS[2]) end
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return {-1, tonumber(redis.call('get', KEYS[2]))}
end
return {redis.call('pttl', KEYS[1]), -1}`

	fairLock = `
while true do
  local first = redis.call('lindex', KEYS[2], 0)
  if first == false then break end
  if tonumber(redis.call('zscore', KEYS[3], first)) <= tonumber(ARGV[4]) then
    redis.call('zrem', KEYS[3], first)
    redis.call('lpop', KEYS[2])
  else break end
end
if redis.call('exists', KEYS[1]) == 0
  and (redis.call('exists', KEYS[2]) == 0 or redis.call('lindex', KEYS[2], 0) == ARGV[2]) then
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], ARGV[2])
  for _, waiting in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
    redis.call('zincrby', KEYS[3], -tonumber(ARGV[3]), waiting)
  end
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
local at = redis.call('zscore', KEYS[3], ARGV[2])
if at ~= false then return at - tonumber(ARGV[3]) - tonumber(ARGV[4]) end
redis.call('zadd', KEYS[3], tonumber(ARGV[4]) + tonumber(ARGV[3]), ARGV[2])
redis.call('rpush', KEYS[2], ARGV[2])
return redis.call('pttl', KEYS[1])`

	readLock = `
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == false then
  redis.call('hset', KEYS[1], 'mode', 'read')
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('set', '{' .. KEYS[1] .. '}:' .. ARGV[2] .. ':rwlock_timeout:1', 1, 'px', ARGV[1])
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if mode == 'read' or redis.call('hexists', KEYS[1], ARGV[3]) == 1 then
  local count = redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('set', '{' .. KEYS[1] .. '}:' .. ARGV[2] .. ':rwlock_timeout:' .. count, 1, 'px', ARGV[1])
  redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), ARGV[1]))
  return nil
end
return redis.call('pttl', KEYS[1])`

	writeLock = `
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == false then
  redis.call('hset', KEYS[1], 'mode', 'write', ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])`

	readUnlock = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
local count = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if count == 0 then redis.call('hdel', KEYS[1], ARGV[1]) end
redis.call('del', '{' .. KEYS[1] .. '}:' .. ARGV[1] .. ':rwlock_timeout:' .. (count + 1))
if redis.call('hlen', KEYS[1]) > 1 then
  local longest = -3
  for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
    local n = tonumber(redis.call('hget', KEYS[1], field))
    if type(n) == 'number' then
      for i = n, 1, -1 do
        longest = math.max(redis.call('pttl', '{' .. KEYS[1] .. '}:' .. field .. ':rwlock_timeout:' .. i), longest)
      end
    end
  end
  if longest > 0 then redis.call('pexpire', KEYS[1], longest) return 0 end
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[2])
return 1`

	permits = `
local free = redis.call('get', KEYS[1])
if free ~= false and tonumber(free) >= tonumber(ARGV[1]) then
  redis.call('decrby', KEYS[1], ARGV[1])
  return 1
end
return 0`
)

func redissonScenarios() []Scenario {
	lock := []string{"lock:{n}"}
	channel := "redisson_lock__channel:{lock:{n}}"
	both := []string{"lock:{n}", channel}
	latched := []string{"lock:{n}", channel, "redisson_unlock_latch:{lock:{n}}:r1"}
	again := []string{"lock:{n}", channel, "redisson_unlock_latch:{lock:{n}}:r2"}
	fair := []string{"lock:{n}", "redisson_lock_queue:{lock:{n}}", "redisson_lock_timeout:{lock:{n}}"}
	fenced := []string{"lock:{n}", "redisson_lock_token:{lock:{n}}"}
	semaphore := []string{"lock:{n}", "redisson_sc:{lock:{n}}"}
	return []Scenario{
		{"redisson: re-entrant", []step{
			eval(HashLock, lock, "200000", "u1:1"),
			eval(HashLock, lock, "200000", "u2:1").by(remaining),
			eval(HashLock, lock, "300000", "u1:1"),
			line("HGET lock:{n} u1:1"),
			line("PTTL lock:{n}").by(remaining),
			eval(HashUnlock, both, "0", "200000", "u2:1"),
			eval(HashUnlock, both, "0", "200000", "u1:1"),
			line("HGETALL lock:{n}"),
			evalsha(HashUnlock, both, "0", "200000", "u1:1"),
			line("EXISTS lock:{n}"),
			evalsha(HashUnlock, both, "0", "200000", "u1:1"),
			evalsha(HashLock, lock, "100000", "u2:1"),
			line("HEXISTS lock:{n} u2:1"),
			eval(hashForce, both, "0"),
			eval(hashForce, both, "0"),
		}},
		{"redisson: unlock with a latch", []step{
			cmd("SCRIPT", "LOAD", hashUnlockLatched),
			eval(HashLock, lock, "200000", "u1:1"),
			evalsha(hashUnlockLatched, latched, "0", "200000", "u1:1", "PUBLISH", "50000"),
			evalsha(hashUnlockLatched, latched, "0", "200000", "u1:1", "PUBLISH", "50000"),
			evalsha(hashUnlockLatched, again, "0", "200000", "u1:1", "PUBLISH", "50000"),
			line("DEL redisson_unlock_latch:{lock:{n}}:r1"),
			line("DEL redisson_unlock_latch:{lock:{n}}:r2"),
			eval(HashLock, lock, "200000", "u1:1"),
			eval(HashLock, lock, "200000", "u1:1"),
			evalsha(hashUnlockLatched, latched, "0", "200000", "u1:1", "SPUBLISH", "50000"),
			line("GET redisson_unlock_latch:{lock:{n}}:r1"),
			evalsha(hashUnlockLatched, again, "0", "200000", "u1:1", "SPUBLISH", "50000"),
		}},
		{"redisson: watchdog of many locks", []step{
			eval(HashLock, []string{"lock:{n}:a"}, "100000", "u1:1"),
			eval(HashLock, []string{"lock:{n}:b"}, "100000", "u2:1"),
			eval(HashRenew, []string{"lock:{n}:a", "lock:{n}:b", "lock:{n}:c"}, "300000", "u1:1", "u1:1", "u1:1"),
			line("PTTL lock:{n}:a").by(remaining),
			line("PTTL lock:{n}:b").by(remaining),
			eval(HashRenew, []string{"lock:{n}:a"}, "400000", "u1:1"),
		}},
		{"redisson: not re-entrant", []step{
			eval(hashOnce, lock, "200000", "u1:1", "NOT REENTRANT"),
			eval(hashOnce, lock, "200000", "u1:1", "NOT REENTRANT"),
			eval(hashOnce, lock, "200000", "u1:1", "REENTRANT"),
			eval(hashOnce, lock, "200000", "u2:1", "NOT REENTRANT").by(remaining),
			line("HLEN lock:{n}"),
		}},
		{"redisson: fenced", []step{
			eval(HashFenced, fenced, "200000", "u1:1"),
			eval(HashFenced, fenced, "200000", "u2:1").by(remaining),
			eval(HashFenced, fenced, "200000", "u1:1"),
			eval(hashForce, both, "0"),
			eval(HashFenced, fenced, "200000", "u2:1"),
		}},
		{"redisson: fair", []step{
			eval(fairLock, fair, "200000", "u1:1", "300000", "1700000000000"),
			eval(fairLock, fair, "200000", "u2:1", "300000", "1700000001000").by(remaining),
			eval(fairLock, fair, "200000", "u3:1", "300000", "1700000002000").by(remaining),
			eval(fairLock, fair, "200000", "u2:1", "300000", "1700000003000").by(remaining),
			eval(hashForce, both, "0"),
			eval(fairLock, fair, "200000", "u3:1", "300000", "1700000004000").by(remaining),
			eval(fairLock, fair, "200000", "u2:1", "300000", "1700000005000"),
			line("LRANGE redisson_lock_queue:{lock:{n}} 0 -1"),
			line("ZRANGE redisson_lock_timeout:{lock:{n}} 0 -1 WITHSCORES"),
			eval(hashForce, both, "0"),
			eval(fairLock, fair, "200000", "u4:1", "300000", "1800000000000"),
			line("EXISTS redisson_lock_queue:{lock:{n}}"),
		}},
		{"redisson: read and write", []step{
			eval(readLock, lock, "200000", "u1:1", "u1:1:write"),
			eval(readLock, lock, "200000", "u2:1", "u2:1:write"),
			eval(readLock, lock, "200000", "u2:1", "u2:1:write"),
			eval(writeLock, lock, "200000", "u3:1:write").by(remaining),
			line("HGETALL lock:{n}"),
			eval(readUnlock, both, "u1:1", "0"),
			eval(readUnlock, both, "u1:1", "0"),
			eval(readUnlock, both, "u2:1", "0"),
			eval(readUnlock, both, "u2:1", "0"),
			line("EXISTS lock:{n}"),
			eval(writeLock, lock, "200000", "u3:1:write"),
			eval(writeLock, lock, "200000", "u3:1:write"),
			eval(readLock, lock, "200000", "u1:1", "u1:1:write").by(remaining),
			eval(readLock, lock, "200000", "u3:1", "u3:1:write"),
			line("HGET lock:{n} mode"),
		}},
		{"redisson: semaphore", []step{
			line("SET lock:{n} 2"),
			eval(permits, semaphore, "1"),
			eval(permits, semaphore, "2"),
			eval(permits, semaphore, "1"),
			eval(permits, semaphore, "1"),
			line("INCRBY lock:{n} 1"),
			line("GET lock:{n}"),
		}},
	}
}

// All returns the scenarios of everything that lock libraries were seen to send.
func All() []Scenario {
	return slices.Concat(releaseScenarios(), extendScenarios(), acquireScenarios(), plainScenarios(),
		redissonScenarios(), sortedSetScenarios(), severalKeysScenarios(), luaScenarios(), luaFailureScenarios())
}
