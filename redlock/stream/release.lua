-- Deletes a lock that has the value. ARGV[2] >= 0 spares an instance that lives longer
-- than that. -2 spares every instance that expires. -1 spares nothing.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local limit = tonumber(ARGV[2])
if limit ~= -1 then
  local left = redis.call('PTTL', KEYS[1])
  if limit == -2 and left ~= -1 then return 0 end
  if limit >= 0 and (left < 0 or left > limit) then return 0 end
end
return redis.call('DEL', KEYS[1])
