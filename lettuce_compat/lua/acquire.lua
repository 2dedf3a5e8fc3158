-- KEYS: lock, line or lock [, fencing record]
-- ARGV: field, lease ms, number of the attempt (0: it does not stand), mode (r: a repeat, the field may be there) [, tokens,
-- a dropped field with its last token and what it had reserved ('', 0, 0: none),
-- life of the record in ms, dropped fields ...]
-- Answers 1 granted, nothing else to tell; {1, first token, found 0|1, the dropped field that was there or ''}
-- granted; {0, holder, pttl} refused; {0, holder, pttl, places before it, found 0|1} refused, and it stands in line.
local key, fence = KEYS[1], KEYS[3]
local field, lease, attempt, mode = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local tokens, life = ARGV[5] or '0', ARGV[9]
local again = string.find(mode, 'r', 1, true)

local found, dropped = 0, ''
local kind = redis.call('type', key)['ok']
if kind ~= 'none' and kind ~= 'hash' then
  return redis.error_reply('WRONGTYPE the key holds a value of type ' .. kind .. ', not a lock')
end
local line = open_line(KEYS[2], mode)

local function refused(holder, ttl)
  local ahead, stood
  if line and attempt ~= '0' then
    ahead, stood = stand(line, field, attempt, lease, tokens)
    if ahead and holder ~= '' and not calls(holder) then
      redis.pcall('hset', line.key, 'stranger', moment(line))
      line.stranger = line.now
    end
  end
  save(line)
  if ahead then return {0, holder, ttl, ahead, stood} end
  return {0, holder, ttl}
end

for i = 10, #ARGV do
  if kind == 'hash' and redis.call('hdel', key, ARGV[i]) == 1 then dropped = ARGV[i] end
  -- One that stands takes over the place of an older field.
  if attempt == '0' then leave(line, ARGV[i]) end
end
local fields = 0
if kind == 'hash' then fields = redis.call('hlen', key) end
if fields > 0 then
  if redis.call('hexists', key, field) == 0 then
    -- A large hash is somebody's data, not a lock: its names are not fetched.
    local holder = ''
    if fields <= 64 then holder = redis.call('hkeys', key)[1] end
    return refused(holder, redis.call('pttl', key))
  end
  found = 1
  if not again then
    return redis.error_reply('ANTEROOM the field is there before its first attempt: two clients share one client id')
  end
elseif line and rest(line) > 0 then
  return refused('', rest(line))
elseif line and line.head <= line.tail then
  -- Whoever stands comes first. The client itself may be the one.
  local client = split(field)
  local p = first_live(line, client)
  if p and p.client ~= client and call(key, line, p, fence, life) then
    return refused(p.field, redis.call('pttl', key))
  end
end

-- Without the right to PEXPIRE a field would stay for ever, so that right is asked for
-- before anything is written, where the server can tell (7.0 and newer).
if redis.acl_check_cmd and not redis.acl_check_cmd('pexpire', key, lease) then
  return redis.error_reply("NOPERM this user has no permissions to run the 'pexpire' command on the lock")
end
local first, text = '0', nil
if fence then
  if ARGV[6] ~= '' then settle(fence, ARGV[6], ARGV[7], ARGV[8], life) end
  first, text = reserve(fence, field, tokens, life)
  if text then return redis.error_reply(text) end
end
text = hold(key, field, lease, found == 1)
if text then return redis.error_reply(text) end
if line and line.head <= line.tail then leave(line, field, true) end
save(line)
if not ARGV[5] and found == 0 then return 1 end
return {1, first, found, dropped}
