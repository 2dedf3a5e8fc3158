-- Shared by all scripts. Every call that may fail after something was written is
-- a protected one, so that an error answer always means: no holder was set, changed or
-- removed, but for burnt fields of the caller's own that an acquire names. In a fencing
-- record tokens may have been reserved in vain, and the grantee may have been changed or
-- forgotten: by an acquire, and by a forced release before it refuses to delete a hash that
-- is no lock. Either only means that a hold that vanishes is not taken back.

-- Servers before 5 replicate a script by its text unless told so first, and then forbid
-- writes after TIME, PTTL or PUBSUB.
if redis.replicate_commands then redis.replicate_commands() end

-- err returns the text of an error answer, or nil.
local function err(answer)
  if type(answer) == 'table' then return answer.err end
end

local function is_wrong_type(text)
  return string.find(text, 'WRONGTYPE', 1, true) ~= nil
end

-- remove deletes one field. HDEL is refused by a read-only replica even where it
-- has nothing to do, so an answer without error also proves that a master gave it.
-- A key of another type does not hold the field. Returns the count, or nil and the error.
local function remove(key, field)
  local answer = redis.pcall('hdel', key, field)
  local text = err(answer)
  if not text then return answer end
  if is_wrong_type(text) then return 0 end
  return nil, text
end

-- raise moves the time to live up to lease, never down. Where there is nothing to
-- raise, deleting a field that nobody has proves the master. Returns an error text or nil.
local function raise(key, lease)
  local ttl = redis.pcall('pttl', key)
  if err(ttl) then return err(ttl) end
  if ttl < tonumber(lease) then return err(redis.pcall('pexpire', key, lease)) end
  local _, text = remove(key, ':none')
  return text
end

-- take makes field the holder. A holder without time to live would stay for ever,
-- so it is taken back where the time to live cannot be set. again: the field may be
-- there, and so may a time to live that must not be shortened.
local function take(key, field, lease, again)
  local text = err(redis.pcall('hset', key, field, '1'))
  if text then return text end
  if again then
    text = raise(key, lease)
  else
    text = err(redis.pcall('pexpire', key, lease))
  end
  if text then redis.pcall('hdel', key, field) end
  return text
end

-- publish tells the waiters. A refusal must not undo the release: -1 says it.
local function publish(channel, message)
  local answer = redis.pcall('publish', channel, message)
  if err(answer) then return -1 end
  return answer
end

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

  return {outlast = outlast, reserve = reserve, settle = settle}
end
