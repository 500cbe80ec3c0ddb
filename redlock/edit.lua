-- Says in the markers of all databases who the masters are, if the marker of this
-- one is still what it was seen to be. Since when they remember stays as it is,
-- and so does a marker that is missing.
local own, seen, set, who, most = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
if redis.call('GET', KEYS[1]) ~= seen then return 0 end
each(own, most, function()
  local text = marker()
  if text and string.find(text, ' set=' .. set .. ' ', 1, true) then
    redis.call('SET', KEYS[1], (string.gsub(text, ' epoch=%d+ joined=%S+ ', function() return who end)))
  end
end)
return 1
