-- Raises the fencing token on record, if the lock has the value and the token is larger.
-- The record is in the marker of database 0, which must tell of the same memory as this
-- database's marker and vote. A marker without a token is of a set that has given none,
-- and counts as the token before ARGV[3]. An embedded server has no other marker.
-- Answers whether the lock has the value, its PTTL, and the token before. The token is -1
-- if there is no such record.
local value, token, first, own, embedded = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5] == 'embedded'
local held = redis.call('GET', KEYS[1]) == value
local left = redis.call('PTTL', KEYS[1])
local here = redis.call('GET', KEYS[2])
if own ~= '0' then redis.call('SELECT', 0) end
local text = redis.call('GET', KEYS[2])
local function memory(text, db) return string.match(text or '', '^redlock%-proxy/[24] db=' .. db .. ' (.-) since=') end
local time = redis.call('TIME')
local function votes()
  local since, quarantine = string.match(text, ' since=(%d+) quarantine=(%d+) ')
  return time[1] * 1000 + time[2] / 1000 >= since + quarantine
end
local before = -1
if embedded then text = text or 'embedded' end
if embedded or memory(here, own) and memory(here, own) == memory(text, 0) and votes() then
  before = tonumber(string.match(text, ' token=(%d+)$') or first - 1)
  if held and before < token then
    redis.call('SET', KEYS[2], string.gsub(text, ' token=%d+$', '') .. ' token=' .. ARGV[2])
  end
end
if own ~= '0' then redis.call('SELECT', own) end
return {held and 1 or 0, left, before}
