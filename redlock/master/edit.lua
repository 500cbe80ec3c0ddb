-- Writes into the markers of all databases who the masters are, and the version that this
-- needs, if this database's marker is still the one that was seen. It keeps the time since
-- when they remember, and adds no missing marker. If asked to, it turns the record of the longest TTL granted: that
-- becomes the longest TTL granted before. It raises the fencing token in database 0 to what the others have on record:
-- with another number of masters, a quorum of the others may not know it.
local own, seen, set, who, turn, most = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local token, version = tonumber(ARGV[7]), ARGV[8]
local time = redis.call('TIME')
local turned = string.format(' longest=0 before=%%1 turned=%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
if cut(redis.call('GET', KEYS[1]) or '') ~= seen then return 0 end
local function raise(db, text)
  local rest, known = cut(text)
  if db ~= 0 or token <= known then return text end
  return rest .. string.format(' token=%.0f', token)
end
each(own, most, function(db)
  local text = marker()
  if text and string.find(text, ' set=' .. set .. ' ', 1, true) then
    text = string.gsub(text, '/%d+ epoch=%d+ joined=%S+ replid=%S+ ', function() return who end)
    text = string.gsub(text, '^%S+', version)
    if turn == 'turn' then text = string.gsub(text, ' longest=(%d+) before=%d+ turned=%d+', turned) end
    redis.call('SET', KEYS[1], raise(db, text))
  end
end)
return 1
