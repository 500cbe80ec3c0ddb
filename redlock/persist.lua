-- Makes a lock permanent by value. PERSIST returns 0 if the lock already is permanent.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PERSIST', KEYS[1])
return 1
