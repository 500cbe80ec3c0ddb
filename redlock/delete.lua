-- Deletes a key of any type where it still is as it was seen.
if redis.call('DUMP', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
