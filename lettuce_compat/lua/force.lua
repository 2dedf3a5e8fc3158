-- KEYS: lock, line or lock, fencing record
-- ARGV: channel, message, prefix of the clients' own channels, notice before and after the field, mode
-- Answers the fields that were deleted.
local key, fence = KEYS[1], KEYS[3]
local kind = redis.call('type', key)['ok']
if kind ~= 'none' and kind ~= 'hash' then
  return redis.error_reply('WRONGTYPE the key holds a value of type ' .. kind .. ', not a lock')
end
local _, text = remove(key, ':none')
if text then return redis.error_reply(text) end
-- Without a grantee no renewal on its way can take the lock again, also where the
-- key is missing at the moment.
redis.pcall('hdel', fence, 'grantee')
if kind == 'none' then return {} end
if redis.call('hlen', key) > 64 then
  return redis.error_reply('ANTEROOM the key holds a hash of more than 64 fields, not a lock')
end
local fields = redis.call('hkeys', key)
redis.call('del', key)
for _, field in ipairs(fields) do
  local client = string.match(field, '^([%w%._%-]+):%d+$')
  if client then publish(ARGV[3] .. client, ARGV[4] .. field .. ARGV[5]) end
end
local receivers = publish(ARGV[1], ARGV[2])
local line = open_line(KEYS[2], ARGV[6])
pass_on(key, line, nil, nil, math.max(receivers, 0), 1)
save(line)
return fields
