-- The tokens of Redisson's dialect are those of RFencedLock: a counter that lives for ever. A grant of ours raises it to the clock, as
-- a grant of the other dialect does.
local function new_token(fence)
  local token, time = redis.pcall('incr', fence), redis.call('time')
  local behind = not err(token) and tonumber(time[1]) * 1000000 + tonumber(time[2]) - token or 0
  if behind > 0 then token = redis.pcall('incrby', fence, string.format('%.0f', behind)) end
  if err(token) then return nil, err(token) end
  return string.format('%.0f', token)
end

local function last_token() end

local function record_calls(fence)
  local new = redis.pcall('exists', fence) == 0
  return {{'get', fence}, {'incr', fence}, {'incrby', fence, '-1'}, new and {'pexpire', fence, '0'} or nil}
end
