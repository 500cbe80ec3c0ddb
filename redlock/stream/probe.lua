-- Runs every command of our scripts on a key of ours. If a right is missing, the script
-- ends with an error.
redis.call('SET', KEYS[1], '', 'PX', 1000)
redis.call('GET', KEYS[1])
redis.call('PTTL', KEYS[1])
redis.call('TIME')
redis.call('PERSIST', KEYS[1])
redis.call('PEXPIRE', KEYS[1], 1000)
redis.call('RESTORE', KEYS[1], 1000, redis.call('DUMP', KEYS[1]), 'REPLACE')
return redis.call('DEL', KEYS[1])
