-- Keeps the next EXEC from running, by a write to the last key, which is watched, if the others hold so
-- much that the answer to an examination of them could be too long. It shows each key before and after,
-- and each command may show one. ARGV: the most bytes of the answer, and the number of commands.
local held, largest = 0, 0
for i = 1, #KEYS - 1 do
  local size, kind = 0, redis.call('TYPE', KEYS[i]).ok
  if kind == 'string' then
    size = redis.call('STRLEN', KEYS[i])
  elseif kind ~= 'none' then
    local dump = redis.pcall('DUMP', KEYS[i])
    size = type(dump) == 'string' and #dump or 0
  end
  held, largest = held + size, math.max(largest, size)
end
if 2 * held + largest * ARGV[2] <= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[#KEYS], '')
redis.call('DEL', KEYS[#KEYS])
return 1
