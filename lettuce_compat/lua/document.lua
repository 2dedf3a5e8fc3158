-- The dialect of the design document. Each dialect says the same things:
--   OURS           a field of a client of ours: its client, its number
--   BEFORE, AFTER  what stands around the key in the name of its release channel
--   TURNS          one turn in so many is left to foreign clients
--   new_token      makes the token of a grant: returns it, or nil and the error
--   last_token     notes the last token of a unit that ends; with a client, of any unit of it
--   token_of       the newest token; with a field, nil where it is not that of the field
--   record_calls   what rehearse tries of a record: what is written leaves nothing
-- The numbers of ours have 16 digits, since they begin with the time in us; threads of foreign clients have less.
local OURS = '^([%w%._%-]+):(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)$'
local BEFORE, AFTER, TURNS = 'lock:release:', '', 2

-- The record lives for life ms after its last grant, so that without it the clock alone makes larger tokens. Lua prints
-- large numbers as 1.7e+15 by itself.
local function new_token(fence, field, life)
  local time, counter = redis.call('time'), redis.pcall('hget', fence, 'counter')
  if err(counter) then return nil, err(counter) end
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local token = string.format('%.0f', math.max((tonumber(counter or '0') or 0) + 1, now))
  local text = err(redis.pcall('hset', fence, 'counter', token, 'grantee', field))
  if text then return nil, text end
  redis.pcall('pexpire', fence, life)
  return token
end

-- A renewal on its way must not take a released lock again: nobody is the grantee then.
local function last_token(fence, field, last, client)
  local record = ask('hmget', fence, 'grantee', 'counter')
  if not record or record[1] ~= field and not (client and string.match(record[1] or '', OURS) == client) then return end
  if tonumber(last) > (tonumber(record[2] or '0') or 0) then redis.pcall('hset', fence, 'counter', last) end
  redis.pcall('hdel', fence, 'grantee')
end

local function token_of(fence, field)
  local record = ask('hmget', fence, 'grantee', 'counter')
  if not record or field and record[1] ~= field then return nil end
  return record[2]
end

local function record_calls(fence)
  return {{'hget', fence, 'counter'}, {'hmget', fence, 'counter'}, {'hset', fence, ':ping', '1', ':pong', '1'}, {'hdel', fence, ':ping', ':pong'}}
end
