-- Visits every database of the server, at most so many, the connection's own
-- first. Where SELECT is not allowed its own is all that there is.
local function each(own, most, visit)
  visit(own)
  for db = 0, most - 1 do
    if db ~= own then
      if redis.pcall('SELECT', db).err then break end
      visit(db)
    end
  end
  redis.pcall('SELECT', own)
end

-- The marker of the database that is selected: its text, '' where there is none,
-- nil where what has its name is none that this version writes over.
local function marker()
  local text = redis.pcall('GET', KEYS[1])
  if not text then return '' end
  if type(text) == 'string' and string.find(text, '^redlock%-proxy/[12] ') then return text end
end

