-- KEYS: lock, line (the lock again: without line and record) [, fencing record]
-- ARGV: step 1|2, release channel, own channel, 1 where renewals wait for replicas, s where a string is a lock
-- Calls what the other scripts call and leaves everything as it was; an error answer names the first call that is refused.
-- Step 1 makes the calls that change nothing and asks about others; step 2, after it, takes a free lock and gives it back. It is
-- a script of its own because of a full memory, which Redis reports to the first write of a script only.
local key, line, fence = KEYS[1], KEYS[2], KEYS[3]

local function attempt(calls)
  for _, call in ipairs(calls) do
    local text = err(redis.pcall(unpack(call)))
    if text then return redis.error_reply(text .. ' (' .. call[1] .. ')') end
  end
end

-- refused asks whether a call would be, without making it. Before 7.0 nobody can know. A command that the server does
-- not have raises.
local function refused(calls)
  for _, call in ipairs(redis.acl_check_cmd and calls or {}) do
    local known, allowed = pcall(redis.acl_check_cmd, unpack(call))
    if not (known and allowed) then
      return redis.error_reply("NOPERM this user has no permissions to run the '" .. call[1] .. "' command (" .. call[2] .. ')')
    end
  end
end

local kind, text = lock_of(key, ARGV[5] == 's')
if not kind then return redis.error_reply(text) end
if ARGV[1] == '2' then
  local failed = kind == 'none' and attempt({{'hset', key, ':ping', '1'}, {'pexpire', key, '1000'}})
  if kind == 'none' then redis.pcall('hdel', key, ':ping') end
  return failed or fence and attempt(record_calls(fence)) or {}
end
return attempt({
  {'exists', key, line}, {'pttl', key}, {'time'},
  {'pubsub', NUMSUB, ARGV[2]}, {'pubsub', 'numsub', ARGV[3]},
}) or (line ~= key or kind ~= 'string') and attempt({{'hdel', line, ':none'}, {'hmget', line, ':'}, {'hget', line, ':'}})
  or kind ~= 'string' and attempt({{'hexists', key, ':'}, {'hget', key, ':'}, {'hkeys', key}, {'hgetall', key}, {'hdel', key, ':none'}})
  or refused({
    {'hset', key, ':', '1'}, {'pexpire', key, '1000'}, {'hdel', key, ':'}, {'hset', line, ':', '1'}, {'pexpire', line, '1000'},
    {PUBLISH, ARGV[2], ''}, {SUBSCRIBE, ARGV[2]}, {'publish', ARGV[3], ''}, {'subscribe', ARGV[3]}, ARGV[4] == '1' and {'wait', '0', '1'} or nil,
  }) or refused({{'script', 'load', ''}}) and refused({{'eval', '', '0'}}) or {}
