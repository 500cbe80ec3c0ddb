-- Raises the longest TTL granted, which is never lowered.
local text = redis.call('GET', KEYS[1])
if not text then return 0 end
local longest = tonumber(string.match(text, 'longest=(%d+)'))
if not longest then return 0 end
if longest < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], (string.gsub(text, 'longest=%d+', 'longest=' .. ARGV[1])))
end
return 1
