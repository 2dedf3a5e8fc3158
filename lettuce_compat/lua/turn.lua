-- KEYS: lock, line or lock [, fencing record]
-- ARGV: field, lease ms, message, mode, ms for which it may be left to strangers, own subscriptions (-1: cannot be known),
-- the field that stands in line afterwards, number of its attempt, tokens, last token, reserved up to, life of the record in ms
-- Answers {2, first token} kept, {1, receivers} released, {1, receivers, holder, pttl, places before it} released, and
-- the other field stands, {0, 0} gone.
local key, fence, field, lease = KEYS[1], KEYS[3], ARGV[1], ARGV[2]
local own, tokens, life = tonumber(ARGV[6]), ARGV[9], ARGV[12]

local here = redis.pcall('hexists', key, field)
if err(here) and not is_wrong_type(err(here)) then return redis.error_reply(err(here)) end
if here ~= 1 then
  local _, text = remove(key, field)
  if text then return redis.error_reply(text) end
  settle(fence, field, ARGV[10], ARGV[11], life)
  return {0, 0}
end

local line = open_line(KEYS[2], ARGV[4])
if line and not first_live(line, '') and not strangers(key, line, math.max(own, 0) + 1, math.max(own, 0)) then
  local first, text = '0', nil
  if fence then
    -- What the last turn did not use goes back first: tokens that ran ahead of the
    -- clock would not grow across a lost record.
    settle(fence, field, ARGV[10], ARGV[11], life)
    first, text = reserve(fence, field, tokens, life)
    if text then return redis.error_reply(text) end
  end
  text = raise(key, lease)
  if text then return redis.error_reply(text) end
  save(line)
  return {2, first}
end

local _, text = remove(key, field)
if text then return redis.error_reply(text) end
settle(fence, field, ARGV[10], ARGV[11], life)
local receivers = publish('lock:release:' .. key, ARGV[3])
if not line then return {1, receivers} end
local called = pass_on(key, line, fence, life, math.max(receivers, 0), tonumber(ARGV[5])) or ''
local ahead = stand(line, ARGV[7], ARGV[8], lease, fence and tokens or '0')
save(line)
if line.refused then receivers = -1 end
if not ahead then return {1, receivers} end
local ttl = rest(line)
if called ~= '' then ttl = redis.call('pttl', key) end
return {1, receivers, called, ttl, ahead}
