-- Tries on a key of ours all that our scripts do. A right that is missing ends it
-- with an error.
redis.call('SET', KEYS[1], '', 'PX', 1000)
redis.call('GET', KEYS[1])
redis.call('PTTL', KEYS[1])
redis.call('TIME')
redis.call('PERSIST', KEYS[1])
redis.call('PEXPIRE', KEYS[1], 1000)
redis.call('RESTORE', KEYS[1], 1000, redis.call('DUMP', KEYS[1]), 'REPLACE')
return redis.call('DEL', KEYS[1])
