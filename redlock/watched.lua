-- Stands between WATCH and MULTI: makes EXEC abort, by touching the watched
-- sentinel KEYS[1], unless the other keys are as they were seen. ARGV has for
-- each its DUMP ('' when absent) and its absolute expiry in ms, -1 being none.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local same = true
for i = 2, #KEYS do
  local pttl = redis.call('PTTL', KEYS[i])
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
