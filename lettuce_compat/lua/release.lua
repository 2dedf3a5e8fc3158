-- KEYS: lock [, fencing record]   ARGV: field, keep ms, channel, message, last token, reserved up to
-- Answers {1, receivers} released, {0, 0} gone.
local key, fence, field, keep = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local mark = field .. ':kept'

if keep ~= '0' and redis.pcall('hexists', key, field) == 1 then
  -- Our field goes, so that no late renewal finds it; the mark keeps the key taken.
  -- That the field can go is made sure before the mark is set.
  local _, text = remove(key, ':none')
  text = text or err(redis.pcall('hset', key, mark, '1'))
  if not text then
    text = err(redis.pcall('pexpire', key, keep))
    if text then redis.pcall('hdel', key, mark) end
  end
  if text then return redis.error_reply(text) end
end
local removed, text = remove(key, field)
if text then return redis.error_reply(text) end
settle(fence, field, ARGV[5], ARGV[6])
if removed == 1 then return {1, publish(ARGV[3], ARGV[4])} end
-- A repeated release finds the mark of the first one: nothing was removed by this one.
if redis.pcall('hexists', key, mark) == 1 then return {2, 0} end
return {0, 0}
