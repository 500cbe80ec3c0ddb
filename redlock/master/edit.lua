-- Writes into the markers of all databases who the masters are, if this database's marker
-- is still the one that was seen. It keeps the time since when they remember, and adds no
-- missing marker. If asked to, it turns the record of the longest TTL granted: that
-- becomes the longest TTL granted before.
local own, seen, set, who, turn, most = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local time = redis.call('TIME')
local turned = string.format(' longest=0 before=%%1 turned=%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
if cut(redis.call('GET', KEYS[1]) or '') ~= seen then return 0 end
each(own, most, function()
  local text = marker()
  if text and string.find(text, ' set=' .. set .. ' ', 1, true) then
    text = string.gsub(text, ' epoch=%d+ joined=%S+ replid=%S+ ', function() return who end)
    if turn == 'turn' then text = string.gsub(text, ' longest=(%d+) before=%d+ turned=%d+', turned) end
    redis.call('SET', KEYS[1], text)
  end
end)
return 1
