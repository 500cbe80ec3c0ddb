-- Raises the longest TTL granted, in this database and in database 0, where all processes
-- look.
local function raise()
  local text = redis.call('GET', KEYS[1])
  local longest = text and tonumber(string.match(text, 'longest=(%d+)'))
  if not longest then return 0 end
  if longest < tonumber(ARGV[2]) then
    redis.call('SET', KEYS[1], (string.gsub(text, 'longest=%d+', 'longest=' .. ARGV[2])))
  end
  return 1
end
local done = raise()
if ARGV[1] ~= '0' and not redis.pcall('SELECT', 0).err then
  raise()
  redis.call('SELECT', ARGV[1])
end
return done
