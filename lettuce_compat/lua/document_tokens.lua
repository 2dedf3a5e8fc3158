-- The tokens of the document's dialect. The record lives for life ms after its last grant, so that without it the clock alone makes larger tokens. Lua prints
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
