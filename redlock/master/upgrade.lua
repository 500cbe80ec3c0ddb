-- Replaces the markers of the first version, which only used databases have, by markers
-- of today in every database. It does so if the marker of this one, database 0, is still
-- the one that was seen. Nothing is forgotten, so each marker keeps the time since when
-- it remembers. It takes that of database 0 if database 0 votes later, or if the marker
-- is of an earlier run. A used database without a marker was flushed, and gets none here.
-- An unused one has nothing to forget that database 0 has not.
local own, seen, new, used, most = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
if redis.call('GET', KEYS[1]) ~= seen then return 0 end
local time = redis.call('TIME')
new = string.gsub(new, ' turned=now$', string.format(' turned=%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
local set, run = string.match(new, ' set=%S+ '), string.match(new, ' run=%S+ ')
local since, quarantine = string.match(new, ' since=(%d+) '), string.match(new, ' quarantine=(%d+) ')
local texts, longest = {}, 0
each(own, most, function(db)
  local text = marker()
  if text and string.find(text, set, 1, true) then
    texts[db] = text
    longest = math.max(longest, tonumber(string.match(text, ' longest=(%d+)')))
  end
end)
each(own, most, function(db)
  local text = texts[db]
  if not text and (marker() ~= '' or used == 'all' or string.find(used, ',' .. db .. ',', 1, true)) then return end
  local from, lasts = since, quarantine
  if text and string.find(text, run, 1, true) then
    local s, q = string.match(text, ' since=(%d+) '), string.match(text, ' quarantine=(%d+) ')
    if s + q > since + quarantine then from, lasts = s, q end
  end
  local text = string.gsub(new, ' db=%d+ ', ' db=' .. db .. ' ')
  text = string.gsub(text, ' since=%d+ quarantine=%d+ longest=%d+', ' since=' .. from .. ' quarantine=' .. lasts .. ' longest=' .. string.format('%.0f', longest))
  redis.call('SET', KEYS[1], text)
end)
return 1
