-- Runs every command of our scripts on a key of ours that does not exist, so that nothing is written. If a
-- right is missing, the script ends with an error. RESTORE needs a copy of something: of the marker. The
-- copy's TTL is over.
redis.call('SET', KEYS[1], '', 'XX', 'PX', 1000)
redis.call('GET', KEYS[1])
redis.call('PTTL', KEYS[1])
redis.call('TIME')
redis.call('PERSIST', KEYS[1])
redis.call('PEXPIRE', KEYS[1], 1000)
local copy = redis.call('DUMP', KEYS[2])
if copy then
  redis.call('RESTORE', KEYS[1], 1, copy, 'REPLACE', 'ABSTTL')
end
return redis.call('DEL', KEYS[1])
