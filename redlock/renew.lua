-- Extends a lock that has the value, or the field if it is a hash. It leaves a longer TTL, or
-- none, as it is.
if ARGV[3] == 'hash' then
  if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
elseif redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
