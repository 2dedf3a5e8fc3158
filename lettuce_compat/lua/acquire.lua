-- KEYS: lock [, fencing record]   ARGV: field, lease ms [, repeat 0|1, tokens,
-- a dropped field with its last token and what it had reserved ('', 0, 0: none),
-- life of the record in ms, dropped fields ...]
-- Answers 1 granted, nothing else to tell; {1, first token, found 0|1, the dropped field that was there or ''}
-- granted; {0, holder, pttl} refused.
local key, fence = KEYS[1], KEYS[2]
local field, lease, again = ARGV[1], ARGV[2], ARGV[3]

local found, dropped = 0, ''
local kind = redis.call('type', key)['ok']
if kind ~= 'none' and kind ~= 'hash' then
  return redis.error_reply('WRONGTYPE the key holds a value of type ' .. kind .. ', not a lock')
end
if kind == 'hash' then
  for i = 9, #ARGV do
    if redis.call('hdel', key, ARGV[i]) == 1 then dropped = ARGV[i] end
  end
  local fields = redis.call('hlen', key)
  if fields > 0 then
    if redis.call('hexists', key, field) == 0 then
      -- A large hash is somebody's data, not a lock: its names are not fetched.
      local holder = ''
      if fields <= 64 then holder = redis.call('hkeys', key)[1] end
      return {0, holder, redis.call('pttl', key)}
    end
    found = 1
    if again ~= '1' then
      return redis.error_reply('ANTEROOM the field is there before its first attempt: two clients share one client id')
    end
  end
end

-- Without the right to PEXPIRE a field would stay for ever, so that right is asked for
-- before anything is written, where the server can tell (7.0 and newer).
if redis.acl_check_cmd and not redis.acl_check_cmd('pexpire', key, lease) then
  return redis.error_reply("NOPERM this user has no permissions to run the 'pexpire' command on the lock")
end
local first, text = '0', nil
if fence then
  if ARGV[5] ~= '' then settle(fence, ARGV[5], ARGV[6], ARGV[7], ARGV[8]) end
  first, text = reserve(fence, field, ARGV[4], ARGV[8])
  if text then return redis.error_reply(text) end
end
text = place(key, field, lease, found == 1)
if text then return redis.error_reply(text) end
if not ARGV[3] then return 1 end
return {1, first, found, dropped}
