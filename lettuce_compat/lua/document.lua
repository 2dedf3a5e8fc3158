-- The dialect of the design document. Each dialect says the same things:
--   OURS           a field of a client of ours: its client, its number
--   BEFORE, AFTER  what surrounds the key in the name of its release channel
--   TURNS          one turn in so many is left to foreign clients
--   new_token      makes the token of a grant: returns it, or nil and the error
--   last_token     notes the last token of a unit that is given back
--   record_calls   what rehearse tries of a record: what is written leaves nothing
-- The numbers of ours have 16 digits, since they begin with the time in us; threads of foreign clients have less.
local OURS = '^([%w%._%-]+):(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)$'
local BEFORE, AFTER, TURNS = 'lock:release:', '', 2

-- The record lives for life ms after its last grant, so that without it the clock alone makes larger tokens. Lua prints
-- large numbers as 1.7e+15 by itself.
local function new_token(fence, life)
  local time, counter = redis.call('time'), redis.pcall('get', fence)
  if err(counter) then return nil, err(counter) end
  if counter and not tonumber(counter) then return nil, 'WRONGTYPE the fencing record is not a number' end
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local token = string.format('%.0f', math.max(tonumber(counter or '0') + 1, now))
  local text = err(redis.pcall('set', fence, token, 'px', life))
  return not text and token or nil, text
end

local function last_token(fence, last, life)
  if tonumber(last) > (tonumber(ask('get', fence) or '0') or 0) then redis.pcall('set', fence, last, 'px', life) end
end

local function record_calls(fence)
  local counter = ask('get', fence)
  return {{'get', fence}, {'set', fence, counter or '0', counter and 'keepttl' or 'px', not counter and '1000' or nil}, not counter and {'pexpire', fence, '0'} or nil}
end
