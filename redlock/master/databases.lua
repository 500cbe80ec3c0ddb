-- Visits the databases of the server, the connection's own first, up to a number. If
-- SELECT is not allowed, it visits only its own.
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

-- Returns a marker's text without the fencing token at its end, and the token.
local function cut(text)
  return (string.gsub(text, ' token=%d+$', '')), tonumber(string.match(text, ' token=(%d+)$') or 0)
end

-- Returns the marker of the selected database, or '' if there is none. It returns nil if
-- the key holds something that this version does not overwrite.
local function marker()
  local text = redis.pcall('GET', KEYS[1])
  if not text then return '' end
  if type(text) == 'string' and string.find(text, '^redlock%-proxy/[24] ') then return text end
end

