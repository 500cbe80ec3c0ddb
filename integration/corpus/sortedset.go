package corpus

// The scripts of this file do the same as those of Symfony's store (5.2 and later), of
// semaphores, and of reader-writer locks on sets.

const (
	zsetClock = `
local now = tonumber(ARGV[1])
if ARGV[4] == 'server' then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
`
	zsetSave = zsetClock + `
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'string' then return false end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 1)
if redis.call('ZSCORE', KEYS[1], ARGV[2]) then
  if not redis.call('ZSCORE', KEYS[1], '__write__') and redis.call('ZCOUNT', KEYS[1], '-inf', '+inf') > 1 then
    return false
  end
elseif redis.call('ZCOUNT', KEYS[1], '-inf', '+inf') > 0 then
  return false
end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
redis.call('ZADD', KEYS[1], now + ARGV[3], '__write__')
local top = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
redis.call('PEXPIREAT', KEYS[1], top)
return true`

	zsetSaveRead = zsetClock + `
if redis.call('TYPE', KEYS[1]).ok == 'string' then return false end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 1)
if redis.call('ZSCORE', KEYS[1], '__write__') then
  if redis.call('ZSCORE', KEYS[1], ARGV[2]) == false then return false end
  redis.call('ZREM', KEYS[1], '__write__')
end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
return true`

	zsetPutOff = zsetClock + `
if redis.call('ZSCORE', KEYS[1], ARGV[2]) == false then return false end
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
if redis.call('ZSCORE', KEYS[1], '__write__') then redis.call('ZADD', KEYS[1], now + ARGV[3], '__write__') end
redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
return true`

	zsetDelete = `
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return false end
redis.call('ZREM', KEYS[1], '__write__')
return true`

	zsetExists = zsetClock + `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 1)
if redis.call('ZSCORE', KEYS[1], ARGV[2]) then return true end
return false`

	timeProbe = `
local now = redis.call("TIME")
redis.call("SET", KEYS[1], "1", "PX", 1)
return 1`

	semaphoreAcquire = `
local limit, id, timeout, now = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('zremrangebyscore', KEYS[1], '-inf', now - timeout)
if redis.call('zcard', KEYS[1]) < limit then
  redis.call('zadd', KEYS[1], now, id)
  redis.call('pexpire', KEYS[1], timeout)
  return 1
end
return 0`

	semaphoreRefresh = `
local limit, id, timeout, now = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('zremrangebyscore', KEYS[1], '-inf', now - timeout)
if redis.call('zscore', KEYS[1], id) then
  redis.call('zadd', KEYS[1], now, id)
  redis.call('pexpire', KEYS[1], timeout)
  return 1
end
return 0`

	semaphoreSeveral = `
local limit, count, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('zcard', KEYS[1]) + count > limit then return 0 end
local added = {}
for i = 1, count do
  added[#added + 1] = now
  added[#added + 1] = ARGV[4] .. '_' .. i
end
redis.call('zadd', KEYS[1], unpack(added))
redis.call('pexpire', KEYS[1], ARGV[5])
return 1`

	readerEnter = `
redis.replicate_commands()
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('sadd', KEYS[2], ARGV[1])
if redis.call('pttl', KEYS[2]) < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[2], ARGV[2]) end
return 1`

	writerEnter = `
local waiting = ARGV[1] .. '_WRITERWAITING'
local writer = redis.call('get', KEYS[1])
if writer == false or writer == waiting then
  if redis.call('scard', KEYS[2]) == 0 then
    redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
    return 1
  end
  redis.call('set', KEYS[1], waiting, 'px', ARGV[2])
end
return 0`
)

func sortedSetScenarios() []Scenario {
	keys := []string{"lock:{n}"}
	const early, later = "4000000000000", "4000000200000" // times of a client whose clock is ahead of every server's
	rw := []string{"lock:{n}.writer", "lock:{n}.readers"}
	return []Scenario{
		{"symfony: write lock", []step{
			eval(zsetSave, keys, early, "token1", "100000"),
			eval(zsetSave, keys, early, "token2", "100000"),
			eval(zsetSave, keys, early, "token1", "200000"),
			line("ZRANGE lock:{n} 0 -1 WITHSCORES"),
			line("PEXPIRETIME lock:{n}"),
			eval(zsetExists, keys, early, "token1"),
			eval(zsetExists, keys, early, "token2"),
			eval(zsetPutOff, keys, early, "token2", "100000"),
			eval(zsetPutOff, keys, early, "token1", "300000"),
			eval(zsetDelete, keys, "token2"),
			eval(zsetDelete, keys, "token1"),
			line("EXISTS lock:{n}"),
			evalsha(zsetSave, keys, early, "token3", "100000"),
			evalsha(zsetSave, keys, later, "token4", "100000"),
			line("ZRANGE lock:{n} 0 -1"),
		}},
		{"symfony: read locks", []step{
			eval(zsetSaveRead, keys, early, "reader1", "100000"),
			eval(zsetSaveRead, keys, early, "reader2", "150000"),
			eval(zsetSave, keys, early, "writer", "100000"),
			eval(zsetSave, keys, early, "reader1", "100000"),
			eval(zsetDelete, keys, "reader1"),
			eval(zsetSave, keys, early, "reader2", "100000"),
			eval(zsetSaveRead, keys, early, "reader1", "100000"),
			eval(zsetSaveRead, keys, early, "reader2", "120000"),
			line("ZCARD lock:{n}"),
		}},
		{"symfony: probe and a string in the way", []step{
			eval(timeProbe, []string{"symfony_check_support_time"}),
			line("SET lock:{n} string"),
			eval(zsetSave, keys, early, "token1", "100000"),
			eval(zsetDelete, keys, "token1"),
			line("GET lock:{n}"),
		}},
		{"semaphore", []step{
			eval(semaphoreAcquire, keys, "2", "a", "100000", "1000000"),
			eval(semaphoreAcquire, keys, "2", "b", "100000", "1000001"),
			eval(semaphoreAcquire, keys, "2", "c", "100000", "1000002"),
			eval(semaphoreRefresh, keys, "2", "a", "100000", "1000003"),
			eval(semaphoreRefresh, keys, "2", "c", "100000", "1000003"),
			line("ZREM lock:{n} b"),
			line("ZREM lock:{n} b"),
			eval(semaphoreAcquire, keys, "2", "c", "100000", "1200000"),
			line("ZRANGE lock:{n} 0 -1 WITHSCORES"),
		}},
		{"semaphore: several permits", []step{
			eval(semaphoreSeveral, keys, "5", "3", "1000000", "a", "100000"),
			eval(semaphoreSeveral, keys, "5", "3", "1000000", "b", "100000"),
			eval(semaphoreSeveral, keys, "5", "2", "1000000", "b", "100000"),
			line("ZCARD lock:{n}"),
			line("ZREM lock:{n} a_1 a_2 a_3"),
		}},
		{"readers and a writer", []step{
			eval(readerEnter, rw, "r1", "100000"),
			eval(readerEnter, rw, "r2", "200000"),
			eval(writerEnter, rw, "w1", "100000"),
			eval(writerEnter, rw, "w2", "100000"),
			line("GET lock:{n}.writer"),
			eval(readerEnter, rw, "r3", "100000"),
			line("SREM lock:{n}.readers r1"),
			line("SREM lock:{n}.readers r2"),
			eval(writerEnter, rw, "w1", "100000"),
			line("GET lock:{n}.writer"),
		}},
	}
}
