-- KEYS: lock, line (the lock again: without one) [, fencing record]
-- ARGV: step 1|2, release channel, own channel, 1 where acquires wait for replicas, 1 where a renewal may take a lock back, 1 where a string is another's lock
-- Calls what an acquire, a renewal and a release of the lock call, and leaves everything as
-- it was. Step 1 makes the calls that change nothing and asks about others; step 2, after
-- it, takes a free lock and gives it back before anybody can see it. Step 2 is a script of
-- its own because of a full memory, which is told to the first write of a script only; and
-- what step 1 has tried cannot fail in it, so that nothing stays.
-- Answers the commands that are refused and that a lock can do without.
local key, line, fence = KEYS[1], KEYS[2], KEYS[3]

-- attempt makes the calls one after the other. Returns the error text of the first that is
-- refused, which names it, or nil.
local function attempt(calls)
  for _, call in ipairs(calls) do
    local text = err(redis.pcall(unpack(call)))
    if text then return text .. ' (' .. call[1] .. ')' end
  end
end

-- refused asks whether a call would be, without making it. Before 7.0 nobody can tell. A
-- command that the server does not have, which rename-command may be the reason for, raises.
local function refused(...)
  if not redis.acl_check_cmd then return false end
  local known, allowed = pcall(redis.acl_check_cmd, ...)
  return not (known and allowed)
end

local function noperm(call)
  return redis.error_reply("NOPERM this user has no permissions to run the '" .. call .. "' command")
end

local kind = redis.pcall('type', key)
if err(kind) then return redis.error_reply(err(kind) .. ' (type)') end
kind = kind['ok']
local strings = ARGV[6] == '1' and kind == 'string'
if kind ~= 'none' and kind ~= 'hash' and not strings then
  return redis.error_reply('WRONGTYPE the key holds a value of type ' .. kind .. ', not a lock')
end

if ARGV[1] == '2' then
  local text
  if kind == 'none' then
    text = attempt({{'hset', key, ':ping', '1'}, {'pexpire', key, '1000'}, {'hkeys', key}})
    redis.pcall('hdel', key, ':ping')
  end
  if fence and not text and RECORD == 'hash' then
    text = attempt({{'hset', fence, ':ping', '1', ':pong', '1'}})
    redis.pcall('hdel', fence, ':ping')
    redis.pcall('hdel', fence, ':pong')
  elseif fence and not text then
    text = attempt({{'incrby', fence, '1'}, {'incrby', fence, '-1'}})
    if redis.pcall('get', fence) == '0' then redis.pcall('del', fence) end
  end
  if text then return redis.error_reply(text) end
  return {}
end

local text = attempt({{'pttl', key}})
if not text and not strings then
  text = attempt({{'hlen', key}, {'hexists', key, ':none'}, {'hget', key, ':none'}, {'hdel', key, ':none'}})
end
if not text and kind == 'none' then text = attempt({{'pexpire', key, '1000'}}) end
if not text and ARGV[5] == '1' then text = attempt({{'exists', key}}) end
if not text and fence and RECORD == 'string' then text = attempt({{'get', fence}}) end
if not text and fence and RECORD == 'hash' then
  text = attempt({{'time'}, {'hget', fence, 'counter'}, {'hmget', fence, 'grantee', 'counter'}, {'hdel', fence, ':none'}})
end
if text then return redis.error_reply(text) end
if kind ~= 'none' then
  if strings and refused('hdel', key, ':none') then return noperm('hdel') end
  if refused('hset', key, ':ping', '1') then return noperm('hset') end
  if refused('pexpire', key, '1000') then return noperm('pexpire') end
  if refused('hkeys', key) then return noperm('hkeys') end
end

-- A server that has forgotten a script is given it again, by one of two commands.
if refused('script', 'load', '') and refused('eval', '', '0') then return noperm('script|load') end
if ARGV[4] == '1' and refused('wait', '0', '1') then return noperm('wait') end

local without = {}
local function dispensable(is_refused, what)
  if is_refused then without[#without + 1] = what end
end
dispensable(line == key or attempt({
  {'exists', line}, {'hlen', line}, {'hget', line, 'head'}, {'hmget', line, 'head'}, {'hdel', line, ':none'}, {'time'},
}), 'the line')
dispensable(refused(PUBLISH, ARGV[2], ''), 'PUBLISH on release channels')
dispensable(refused(SUBSCRIBE, ARGV[2]), 'SUBSCRIBE to release channels')
dispensable(refused('publish', ARGV[3], ''), 'PUBLISH on clients\' own channels')
dispensable(refused('subscribe', ARGV[3]), 'SUBSCRIBE to the own channel')
dispensable(err(redis.pcall('pubsub', NUMSUB, ARGV[2])), 'PUBSUB NUMSUB')
return without
