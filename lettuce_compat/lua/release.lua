-- KEYS: lock, line or lock [, fencing record]
-- ARGV: field, message, mode, ms for which it may be left to strangers [, keep ms, last token, reserved up to, life of the record in ms]
-- Answers the number of receivers (-1: it cannot be told) released, {2, 0} only the mark was there, {3, 0} only a place
-- in line, {0, 0} gone.
local key, fence, field, keep = KEYS[1], KEYS[3], ARGV[1], ARGV[5] or '0'
local line = open_line(KEYS[2], ARGV[3])

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
settle(fence, field, ARGV[6], ARGV[7], ARGV[8])
local left, receivers = leave(line, field), 0
if removed == 1 then receivers = publish('lock:release:' .. key, ARGV[2]) end
pass_on(key, line, fence, ARGV[8], math.max(receivers, 0), tonumber(ARGV[4]))
if line and removed == 1 and keep ~= '0' then look(line, tonumber(keep)) end
save(line)
if removed == 1 then
  if line and line.refused then return -1 end
  return receivers
end
-- A repeated release finds the mark of the first one: nothing was removed by this one.
if redis.pcall('hexists', key, field .. ':kept') == 1 then return {2, 0} end
if left then return {3, 0} end
return {0, 0}
