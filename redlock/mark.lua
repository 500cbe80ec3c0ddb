-- Writes the marker if it is still what it was seen to be. since=now becomes
-- the master's own time.
local text = redis.call('GET', KEYS[1]) or ''
if text ~= ARGV[1] then return 0 end
local now = redis.call('TIME')
local since = string.format('since=%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
redis.call('SET', KEYS[1], (string.gsub(ARGV[2], 'since=now', since)))
return 1
