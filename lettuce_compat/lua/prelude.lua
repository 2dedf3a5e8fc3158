-- Shared by all scripts. Every call that may fail after something was written is a protected one, so that an
-- error answer always means: no unit or place of who asks was set, changed or removed.

-- Below 7 a server can be configured to copy scripts to its replicas. It then refuses a write after TIME or PTTL, unless the
-- script has asked at its start to copy the writes instead. Servers that always copy writes may lack the function.
pcall(redis.replicate_commands)

-- err returns the text of an error answer, or nil.
local function err(answer)
  if type(answer) == 'table' then return answer.err end
end

-- ask is a protected call that returns nil for an error.
local function ask(...)
  local answer = redis.pcall(...)
  if not err(answer) then return answer end
end

-- remove deletes one field. A key of another type does not hold it. Returns the count, or nil and the error.
local function remove(key, field)
  local answer = redis.pcall('hdel', key, field)
  if not err(answer) then return answer end
  if string.find(err(answer), 'WRONGTYPE', 1, true) then return 0 end
  return nil, err(answer)
end

-- prove returns an error text unless a master is asked: a read-only replica refuses HDEL even where it has nothing to do.
local function prove(key)
  local _, text = remove(key, ':none')
  return text
end

-- raise moves the time to live up to lease, never down. It writes also where nothing is to be raised: that proves the
-- master, and WAIT speaks about what its own connection has written. Returns an error text or nil.
local function raise(key, lease)
  local ttl = redis.pcall('pttl', key)
  return err(ttl) or err(redis.pcall('pexpire', key, math.max(ttl + 1, tonumber(lease))))
end

-- take sets a field, to value or 1, and the time to live of a key that is free or the field's own. A field without an end would stay for
-- ever, so it is taken back where that cannot be set. Returns an error text or nil.
local function take(key, field, lease, value)
  local text = err(redis.pcall('hset', key, field, value or '1')) or err(redis.pcall('pexpire', key, lease))
  if text then redis.pcall('hdel', key, field) end
  return text
end

-- note_of returns the note in the value of a field, nil where there is none.
local function note_of(value) return value and string.match(value, '^1 note: (.*)$') end

-- lock_of says what a lock is: nothing, a hash of at most 64 counts, one with a note, or a string where strings are locks. It returns its
-- type and what HGETALL answers; nil and an error text where the key holds something else. It changes nothing.
local function lock_of(key, strings)
  local n = redis.pcall('hlen', key)
  if n == 0 then return 'none', {} end
  if err(n) then
    if not string.find(err(n), 'WRONGTYPE', 1, true) then return nil, err(n) end
    local kind = redis.call('type', key)['ok']
    if kind == 'string' and strings then return kind, {} end
    return nil, 'WRONGTYPE the key holds a value of type ' .. kind .. ', not a lock'
  end
  local all = n <= 64 and redis.call('hgetall', key) or {'', ''}
  for i = 2, #all, 2 do
    if not string.find(all[i], '^%d+$') and not note_of(all[i]) then
      local kind = redis.call('hexists', key, ':') == 1 and 'a lock of another kind' or 'a hash that is no lock'
      return nil, 'WRONGTYPE the key holds ' .. kind
    end
  end
  return 'hash', all
end

-- publish returns the number of receivers, -1 if it is refused: it must not undo a release. It uses PUBLISH on a Cluster
-- below 7, which does not know SPUBLISH.
local function publish(channel, message, command)
  local answer = redis.pcall(command or 'publish', channel, message)
  if err(answer) and string.find(err(answer), 'nknown') then answer = redis.pcall('publish', channel, message) end
  return err(answer) and -1 or answer
end
