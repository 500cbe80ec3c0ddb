-- Deletes a key that is no string if it still holds what was seen. ARGV is its type and
-- its items, or "dump" and its payload, or "longer" and the bytes that any key must exceed. Payloads are compared only for types that this
-- script does not know, because each master keeps a set's members in an order of its
-- own.
local kind, size = ARGV[1], #ARGV - 1
if kind == 'dump' then
  if redis.call('DUMP', KEYS[1]) ~= ARGV[2] then return 0 end
  return redis.call('DEL', KEYS[1])
end
if kind == 'longer' then
  local is, long = redis.call('TYPE', KEYS[1]).ok
  if is == 'string' then
    long = redis.call('STRLEN', KEYS[1])
  else
    long = #(redis.call('DUMP', KEYS[1]) or '')
  end
  if long <= tonumber(ARGV[2]) then return 0 end
  return redis.call('DEL', KEYS[1])
end
if redis.call('TYPE', KEYS[1]).ok ~= kind then return 0 end
if kind == 'list' then
  local list = redis.call('LRANGE', KEYS[1], 0, -1)
  if #list ~= size then return 0 end
  for i = 1, size do
    if list[i] ~= ARGV[i + 1] then return 0 end
  end
elseif kind == 'set' then
  if redis.call('SCARD', KEYS[1]) ~= size then return 0 end
  for i = 2, #ARGV do
    if redis.call('SISMEMBER', KEYS[1], ARGV[i]) == 0 then return 0 end
  end
elseif kind == 'zset' then
  if redis.call('ZCARD', KEYS[1]) ~= size then return 0 end
  for i = 2, #ARGV do
    if not redis.call('ZSCORE', KEYS[1], ARGV[i]) then return 0 end
  end
else
  if redis.call('HLEN', KEYS[1]) * 2 ~= size then return 0 end
  for i = 2, #ARGV, 2 do
    if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then return 0 end
  end
end
return redis.call('DEL', KEYS[1])
