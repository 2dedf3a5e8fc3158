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

-- publish tells the waiters, by PUBLISH or by another command. A refusal must not undo the
-- release: -1 says it. A Cluster that does not know SPUBLISH, below 7, is told by PUBLISH.
local function publish(channel, message, command)
  local answer = redis.pcall(command or 'publish', channel, message)
  if command == 'spublish' and err(answer) and string.find(err(answer), 'nknown') then
    answer = redis.pcall('publish', channel, message)
  end
  if err(answer) then return -1 end
  return answer
end
