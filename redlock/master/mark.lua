-- Writes the marker if it is still the one that was seen and it is not too late: it may
-- have changed and changed back. since=now becomes the master's own time. The spread says
-- where to write. here: only this database. lacking: also databases without a marker of
-- this set and this run of the server. all: every database. The fencing token in database
-- 0 is never lowered. A marker that SWAPDB has brought to another database than its own, and
-- that stays there, names no database any more (marker.Nowhere). Otherwise a second SWAPDB
-- could bring it back behind the new one, and nothing would tell what was forgotten.
-- Whoever writes through database 0 may not know the longest TTL granted in the others, whose
-- markers still tell it. All processes look for it in database 0, so its new marker takes it over:
-- as granted before, or as still granted where the other marker stays.
local own, seen, latest, new, spread, most = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local text = redis.call('GET', KEYS[1]) or ''
if cut(text) ~= seen or now > latest then return 0 end
local new, token = cut(new)
new = string.gsub(new, ' since=now ', string.format(' since=%.0f ', now))
new = string.gsub(new, ' turned=now$', string.format(' turned=%.0f', now))
local set, run = string.match(new, ' set=%S+ '), string.match(new, ' run=%S+ ')
local function remembers(text)
  return string.find(text, set, 1, true) and string.find(text, run, 1, true)
end
local function overwrites(db, text)
  return db == own or spread == 'all' or spread == 'lacking' and not remembers(text)
end
if own == 0 then
  local function number(text, name) return tonumber(string.match(text, ' ' .. name .. '=(%d+)') or 0) end
  local longest, before = number(new, 'longest'), number(new, 'before')
  each(own, most, function(db)
    local text = marker()
    if text and string.find(text, set, 1, true) then
      if overwrites(db, text) then
        before = math.max(before, number(text, 'longest'))
      else
        longest = math.max(longest, number(text, 'longest'))
      end
      before = math.max(before, number(text, 'before'))
    end
  end)
  new = string.gsub(new, ' longest=%d+ before=%d+', string.format(' longest=%.0f before=%.0f', longest, before))
end
each(own, most, function(db)
  local text = marker()
  if text and overwrites(db, text) then
    local _, known = cut(text)
    local last = math.max(token, known)
    last = db == 0 and last > 0 and string.format(' token=%.0f', last) or ''
    redis.call('SET', KEYS[1], string.gsub(new, ' db=%d+ ', ' db=' .. db .. ' ') .. last)
  elseif text and remembers(text) and not string.find(text, ' db=' .. db .. ' ', 1, true) then
    redis.call('SET', KEYS[1], (string.gsub(text, ' db=%d+ ', ' db=2147483647 ')))
  end
end)
return 1
