-- Makes a lock permanent by value. PERSIST answers 0 when it is already so.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PERSIST', KEYS[1])
return 1
