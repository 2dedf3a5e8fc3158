-- KEYS: lock, line (the lock again: without one), fencing record
-- ARGV: message, notice before and after the field, own subscriptions of the release channel (-1: NUMSUB
-- knows nothing), ms that the lock stays open for those who do not stand, life of the record in ms
-- Answers the fields that were deleted.
local key, line, fence = KEYS[1], KEYS[2], KEYS[3]
if line == key then line = nil end
local kind = redis.call('type', key)['ok']
if kind ~= 'none' and kind ~= 'hash' then
  return redis.error_reply('WRONGTYPE the key holds a value of type ' .. kind .. ', not a lock')
end
local _, text = remove(key, ':none')
if text then return redis.error_reply(text) end
-- Without a grantee no renewal on its way can take the lock again, also where the
-- key is missing at the moment.
fencing().forget(fence)
local fields = {}
if kind == 'hash' then
  if redis.call('hlen', key) > 64 then
    return redis.error_reply('ANTEROOM the key holds a hash of more than 64 fields, not a lock')
  end
  fields = redis.call('hkeys', key)
  redis.call('del', key)
  for _, field in ipairs(fields) do
    local client = string.match(field, OURS)
    if client then publish('anteroom:client:' .. client, ARGV[2] .. field .. ARGV[3]) end
  end
  publish(BEFORE .. key .. AFTER, ARGV[1], PUBLISH)
end
local lines = is_there(line) and line_functions()
local l = lines and lines.read(line)
if l and l.open <= l.now then
  lines.hand_on(key, l, fence, ARGV[6], 0, tonumber(ARGV[5]), tonumber(ARGV[4]))
  lines.save(l)
end
return fields
