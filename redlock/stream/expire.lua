-- Sets the TTL of a lock that has the value, late. A lock that was extended since stays
-- as it is.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
