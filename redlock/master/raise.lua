-- Raises the longest TTL granted, in this database and in database 0, where all processes
-- look. If database 0 has no marker of its own, it was flushed or swapped. Then its next
-- marker would not tell of the TTL, so nothing is raised.
local function raise(db)
  local text = redis.call('GET', KEYS[1])
  local longest = text and tonumber(string.match(text, 'longest=(%d+)'))
  if not longest or string.match(text, ' db=(%d+) ') ~= db then return 0 end
  if longest < tonumber(ARGV[2]) then
    redis.call('SET', KEYS[1], (string.gsub(text, 'longest=%d+', 'longest=' .. ARGV[2])))
  end
  return 1
end
if ARGV[1] ~= '0' and not redis.pcall('SELECT', 0).err then
  local recorded = raise('0')
  redis.call('SELECT', ARGV[1])
  if recorded == 0 then return 0 end
end
return raise(ARGV[1])
