-- Puts a key back to what it was before a run, if it still is exactly what the
-- run left: the same payload with the same absolute expiry, within 2 ms. By the
-- payload alone, another holder's equal value would pass for the run's.
-- ARGV: the payload left, empty if the key was absent, and its expiry in ms, -1
-- being none; then the payload and the expiry from before, empty and -1 for none;
-- and until when by this master's clock, if the key is replaced.
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local now, pttl
for _ = 1, 3 do -- a server that is held up in between misreads the expiry
  now, pttl = clock(), redis.call('PTTL', KEYS[1])
  if clock() - now <= 1 then break end
end
if (redis.call('DUMP', KEYS[1]) or '') ~= ARGV[1] then return 0 end
local left = tonumber(ARGV[2])
if pttl < 0 or left < 0 then
  if pttl >= 0 or left >= 0 then return 0 end
elseif math.abs(now + pttl - left) > 2 then
  return 0
end
local payload, expiry = ARGV[3], tonumber(ARGV[4])
local done
if ARGV[5] and now > tonumber(ARGV[5]) then return 0 end
if payload == '' or expiry >= 0 and expiry <= now then
  done = redis.pcall('DEL', KEYS[1])
elseif expiry < 0 then
  done = redis.pcall('RESTORE', KEYS[1], 0, payload, 'REPLACE')
else
  done = redis.pcall('RESTORE', KEYS[1], ARGV[4], payload, 'REPLACE', 'ABSTTL')
end
if type(done) ~= 'table' or not done.err then return 1 end
-- An older server than the one that wrote the payload will never read it.
if string.find(done.err, 'DUMP payload') or string.find(done.err, 'Bad data') then return 0 end
return done
