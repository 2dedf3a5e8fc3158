-- The dialect of the design document. Each dialect says the same things:
--   OURS           a field of a client that knows the line: its client, its number
--   TURNS          at most one turn in so many of ours is left to strangers
--   BEFORE, AFTER  what stands around the key in the name of its release channel
--   RECORD         the type of the fencing record
--   fencing        the functions about it
local OURS = '^([%w%._%-]+):(%d+)$'
local BEFORE, AFTER = 'lock:release:', ''
local RECORD, TURNS = 'hash', 2

-- fencing makes the functions about a fencing record, only where there is one: to make a function
-- costs each call of a script some of Redis' time.
local function fencing()
  -- outlast sees to it that the record lives for ms more, or longer where it does already, or for
  -- least if that is said and it does. A record without an end, which older clients have left,
  -- gets one. That this may be refused costs memory only.
  local function outlast(fence, ms, least)
    local left = redis.pcall('pttl', fence)
    if not err(left) and left < (least or ms) then redis.pcall('pexpire', fence, string.format('%.0f', ms)) end
  end

  -- reserve takes tokens from the fencing record, above everything given out before
  -- and above the server's clock. The record lives for ms after the moment at which the
  -- clock has reached the last of them, so that without it the clock alone makes larger
  -- ones, also where it was set back before. Lua prints large numbers as 1.7e+15 by itself.
  -- Returns the first token, or nil and the error.
  local function reserve(fence, field, tokens, ms)
    local time = redis.call('time')
    local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
    local counter = redis.pcall('hget', fence, 'counter')
    if err(counter) then return nil, err(counter) end
    local first = math.max(tonumber(counter or '0') or 0, now) + 1
    local last = first + tonumber(tokens) - 1
    local text = err(redis.pcall('hset', fence, 'counter', string.format('%.0f', last), 'grantee', field))
    if text then return nil, text end
    outlast(fence, tonumber(ms) + (last - now) / 1000)
    return string.format('%.0f', first)
  end

  -- settle closes the fencing record of a grant that ends: unused tokens go back if
  -- nobody reserved after us, and the grantee is forgotten, so that a late renewal
  -- cannot take a released lock again. The record lives for ms from then on.
  local function settle(fence, field, last, reserved, ms)
    local record = redis.pcall('hmget', fence, 'grantee', 'counter')
    if err(record) or record[1] ~= field then return end
    if reserved ~= '0' and record[2] == reserved then
      redis.pcall('hset', fence, 'counter', last)
    end
    redis.pcall('hdel', fence, 'grantee')
    outlast(fence, tonumber(ms))
  end

  -- forget forgets the grantee, whoever that is: it must not take the lock back now.
  local function forget(fence)
    redis.pcall('hdel', fence, 'grantee')
  end

  -- newest returns the newest token that was reserved, or an error.
  local function newest(fence)
    return redis.pcall('hget', fence, 'counter')
  end

  return {outlast = outlast, reserve = reserve, settle = settle, forget = forget, newest = newest}
end
