-- KEYS: lock [, fencing record]
-- ARGV: field, lease ms, channel, message, own subscriptions (-1: cannot be known), tokens, last token,
-- reserved up to, life of the record in ms
-- Answers {2, first token} kept, {1, receivers} released, {0, 0} gone.
local key, fence, field = KEYS[1], KEYS[2], ARGV[1]
local channel, own = ARGV[3], tonumber(ARGV[5])

local here = redis.pcall('hexists', key, field)
if err(here) and not is_wrong_type(err(here)) then return redis.error_reply(err(here)) end
if here ~= 1 then
  local _, text = remove(key, field)
  if text then return redis.error_reply(text) end
  settle(fence, field, ARGV[7], ARGV[8], ARGV[9])
  return {0, 0}
end

local others = -1
if own >= 0 then
  local count = redis.pcall('pubsub', 'numsub', channel)
  -- A server that does not even count us, which makes -1, is not the one that we listen to.
  if not err(count) and tonumber(count[2]) then others = tonumber(count[2]) - own end
end
if others == 0 then
  local first, text = '0', nil
  if fence then
    -- What the last turn did not use goes back first: tokens that ran ahead of the
    -- clock would not grow across a lost record.
    settle(fence, field, ARGV[7], ARGV[8], ARGV[9])
    first, text = reserve(fence, field, ARGV[6], ARGV[9])
    if text then return redis.error_reply(text) end
  end
  text = raise(key, ARGV[2])
  if text then return redis.error_reply(text) end
  return {2, first}
end

local _, text = remove(key, field)
if text then return redis.error_reply(text) end
settle(fence, field, ARGV[7], ARGV[8], ARGV[9])
return {1, publish(channel, ARGV[4])}
