-- Stands between WATCH and MULTI: makes EXEC abort, by touching the watched
-- sentinel KEYS[1], unless the other keys are as they were seen. ARGV has for
-- each its DUMP ('' when absent) and its absolute expiry in ms, -1 being none.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local same = true
for i = 2, #KEYS do
  local now, pttl
  for _ = 1, 3 do -- a server that is held up in between misreads the expiry
    now, pttl = clock(), redis.call('PTTL', KEYS[i])
    if clock() - now <= 1 then break end
  end
  local dump = redis.call('DUMP', KEYS[i]) or ''
  local expiry = tonumber(ARGV[2 * i - 2])
  if dump ~= ARGV[2 * i - 3] then
    same = false
  elseif dump ~= '' and (pttl < 0 or expiry < 0) then
    same = same and pttl < 0 and expiry < 0
  elseif dump ~= '' and math.abs(now + pttl - expiry) > 2 then
    same = false
  end
end
if not same then
  redis.call('SET', KEYS[1], '')
  redis.call('DEL', KEYS[1])
end
return 1
