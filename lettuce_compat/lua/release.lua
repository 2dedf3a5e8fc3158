-- KEYS: lock [, fencing record]   ARGV: field, channel, message [, keep ms, last token, reserved up to, life of the record in ms]
-- Answers the number of receivers (-1: it cannot be told) released, {2, 0} only the mark was there, {0, 0} gone.
local key, fence, field, keep = KEYS[1], KEYS[2], ARGV[1], ARGV[4] or '0'

if keep ~= '0' and redis.pcall('hexists', key, field) == 1 then
  -- Our field goes, so that no late renewal finds it; the mark keeps the key taken.
  -- That the field can go is made sure before the mark is set.
  local _, text = remove(key, ':none')
  text = text or err(redis.pcall('hset', key, field .. ':kept', '1'))
  if not text then
    text = err(redis.pcall('pexpire', key, keep))
    if text then redis.pcall('hdel', key, field .. ':kept') end
  end
  if text then return redis.error_reply(text) end
end
local removed, text = remove(key, field)
if text then return redis.error_reply(text) end
settle(fence, field, ARGV[5], ARGV[6], ARGV[7])
if removed == 1 then return publish(ARGV[2], ARGV[3]) end
-- A repeated release finds the mark of the first one: nothing was removed by this one.
if redis.pcall('hexists', key, field .. ':kept') == 1 then return {2, 0} end
return {0, 0}
