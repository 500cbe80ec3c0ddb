-- Stands between WATCH and a transaction: tells whether the keys are as they
-- were seen. ARGV has for each its DUMP ('' when absent) and its absolute expiry
-- in ms, -1 being none.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
for i = 1, #KEYS do
  local now, pttl
  for _ = 1, 3 do -- a server that is held up in between misreads the expiry
    now, pttl = clock(), redis.call('PTTL', KEYS[i])
    if clock() - now <= 1 then break end
  end
  local dump = redis.call('DUMP', KEYS[i]) or ''
  local expiry = tonumber(ARGV[2 * i])
  if dump ~= ARGV[2 * i - 1] then return 0 end
  if dump ~= '' then
    if pttl < 0 or expiry < 0 then
      if pttl >= 0 or expiry >= 0 then return 0 end
    elseif math.abs(now + pttl - expiry) > 2 then
      return 0
    end
  end
end
return 1
