package corpus

// The scripts of this file work on several keys: on all of them or on none.

const (
	allOrNothing = `
-- 0 when one is taken, else how many were taken
for _, key in ipairs(KEYS) do
  if redis.call("exists", key) == 1 then return 0 end
end
local count = 0
for _, key in ipairs(KEYS) do
  redis.call("set", key, ARGV[1], "PX", ARGV[2])
  count = count + 1
end
return count`

	allExtend = `
for i, key in ipairs(KEYS) do
  if redis.call("get", key) ~= ARGV[1] then return 0 end
end
for i, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "PX", ARGV[2]) end
return #KEYS`

	eachRelease = `
local count = 0
for i, key in ipairs(KEYS) do
  if redis.pcall("get", key) == ARGV[1] then
    redis.pcall("del", key)
    count = count + 1
  end
end
return count`

	msetAcquire = `
local pairsOf = {}
for _, key in ipairs(KEYS) do
  pairsOf[#pairsOf + 1] = key
  pairsOf[#pairsOf + 1] = ARGV[1]
end
if redis.call("msetnx", unpack(pairsOf)) == 1 then
  for _, key in ipairs(KEYS) do redis.call("pexpire", key, ARGV[2]) end
  return redis.status_reply("OK")
end
for _, held in ipairs(redis.call("mget", unpack(KEYS))) do
  if not held or string.sub(held, 1, tonumber(ARGV[3])) ~= string.sub(ARGV[1], 1, tonumber(ARGV[3])) then return nil end
end
redis.call("mset", unpack(pairsOf))
for _, key in ipairs(KEYS) do redis.call("pexpire", key, ARGV[2]) end
return redis.status_reply("OK")`

	funnel = `
for i, held in ipairs(redis.call('mget', unpack(KEYS))) do
  if not held then
    redis.call('set', KEYS[i], ARGV[3], 'EX', ARGV[2])
    return ARGV[1] .. i
  end
end`

	latchedRelease = `
if redis.call('get', KEYS[1]) == ARGV[1] then
  redis.call('del', KEYS[1])
  redis.call('rpush', KEYS[2], 'released')
  redis.call('publish', KEYS[1] .. ':released', KEYS[1])
  return redis.call('llen', KEYS[2])
end
return 0`

	moveOwner = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return {err = 'NOTOWNER'} end
if redis.call('exists', KEYS[2]) == 1 then return {false, redis.call('get', KEYS[2])} end
redis.call('rename', KEYS[1], KEYS[2])
return {redis.call('get', KEYS[2]), redis.call('exists', KEYS[1])}`
)

func severalKeysScenarios() []Scenario {
	ab := []string{"lock:{n}:a", "lock:{n}:b"}
	bc := []string{"lock:{n}:b", "lock:{n}:c"}
	abc := []string{"lock:{n}:a", "lock:{n}:b", "lock:{n}:c"}
	queue := []string{"lock:{n}:a", "lock:{n}:queue"}
	return []Scenario{
		{"node-redlock", []step{
			evalsha("-- lock {n}\n"+allOrNothing, ab, "t1", "100000"),
			eval(allOrNothing, ab, "t1", "100000"),
			evalsha(allOrNothing, bc, "t2", "100000"),
			line("MGET lock:{n}:a lock:{n}:b lock:{n}:c"),
			eval(allExtend, abc, "t1", "200000"),
			eval(allExtend, ab, "t1", "200000"),
			line("PTTL lock:{n}:b").by(remaining),
			eval(eachRelease, abc, "t2"),
			eval(eachRelease, bc, "t1"),
			eval(eachRelease, abc, "t1"),
			eval(allOrNothing, abc, "t2", "100000"),
			line("HSET lock:{n}:d f v"),
			eval(eachRelease, append([]string{"lock:{n}:d"}, abc...), "t2"),
		}},
		{"the same key twice", []step{
			eval(allOrNothing, []string{"lock:{n}", "lock:{n}"}, "t1", "100000"),
			eval(allExtend, []string{"lock:{n}", "lock:{n}"}, "t1", "200000"),
			eval(eachRelease, []string{"lock:{n}", "lock:{n}"}, "t1"),
		}},
		{"bsm, several keys", []step{
			eval(msetAcquire, ab, "tok1meta", "100000", "4"),
			eval(msetAcquire, bc, "tok2meta", "100000", "4"),
			eval(msetAcquire, ab, "tok1else", "200000", "4"),
			line("MGET lock:{n}:a lock:{n}:b lock:{n}:c"),
			eval(eachRelease, abc, "tok1else"),
		}},
		{"laravel funnel", []step{
			eval(funnel, abc, "lock:slot", "100", "id1"),
			eval(funnel, abc, "lock:slot", "100", "id2"),
			eval(funnel, abc, "lock:slot", "100", "id3"),
			eval(funnel, abc, "lock:slot", "100", "id4"),
			eval(ReleaseScripts["one line"], []string{"lock:{n}:b"}, "id2"),
			eval(funnel, abc, "lock:slot", "100", "id4"),
		}},
		{"a latch beside the lock", []step{
			line("SET lock:{n}:a mine NX PX 100000"),
			eval(latchedRelease, queue, "other"),
			eval(latchedRelease, queue, "mine"),
			eval(latchedRelease, queue, "mine"),
			line("LPOP lock:{n}:queue"),
		}},
		{"a lock changes its name", []step{
			line("SET lock:{n}:a mine NX PX 100000"),
			eval(moveOwner, ab, "other"),
			eval(moveOwner, ab, "mine"),
			eval(moveOwner, ab, "mine"),
			line("SET lock:{n}:a mine NX PX 100000"),
			eval(moveOwner, ab, "mine"),
			line("PTTL lock:{n}:b").by(remaining),
		}},
	}
}
