-- KEYS: lock, line (the lock again: without one) [, fencing record]
-- ARGV: field, lease ms, message, own subscriptions of the release channel (-1: NUMSUB knows nothing), ms
-- that the lock stays open for those who do not stand, the field that stands next, its attempt (0: it does
-- not), ears, tokens, last token, reserved up to, life of the record in ms
-- Answers {2, first token} kept, {0, 0} gone; {1, receivers} released,
-- {1, receivers, holder, pttl, places ahead, found 0|1} released and standing; receivers as in a release.
local key, line, fence, field = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local channel, own, life = BEFORE .. KEYS[1] .. AFTER, tonumber(ARGV[4]), ARGV[12]
if line == key then line = nil end
local tokens = fence and fencing()

local here = redis.pcall('hexists', key, field)
if err(here) and not is_wrong_type(err(here)) then return redis.error_reply(err(here)) end
if here ~= 1 then
  local _, text = remove(key, field)
  if text then return redis.error_reply(text) end
  if tokens then tokens.settle(fence, field, ARGV[10], ARGV[11], life) end
  local lines = is_there(line) and line_functions()
  local l = lines and lines.read(line)
  if l and l.open <= l.now and redis.pcall('exists', key) == 0 then
    lines.hand_on(key, l, fence, life, 0, tonumber(ARGV[5]), own)
    lines.save(l)
  end
  return {0, 0}
end

-- Others are a living place of another client, or those who do not stand: who was seen lately,
-- or listens beside us. A server that counts fewer than us is not the one that we listen to.
-- Where it cannot be known who listens, or who stands, the turn ends.
local lines = line_functions()
local l = lines.read(line)
local others = not l or own < 0 or lines.numsub(channel, NUMSUB) ~= own or lines.seen(l)
local p, more
if not others then
  p, more = lines.first(l, lines.split(field), SHARDED, true)
  others = p or more
end
if not others then
  local token, text = '0', nil
  if tokens then
    -- What the last turn did not use goes back first: tokens that ran ahead of the
    -- clock would not grow across a lost record.
    tokens.settle(fence, field, ARGV[10], ARGV[11], life, true)
    token, text = tokens.reserve(fence, field, ARGV[9], life)
    if text then return redis.error_reply(text) end
  end
  text = raise(key, ARGV[2])
  if text then return redis.error_reply(text) end
  lines.save(l)
  return {2, token}
end

local removed, text = remove(key, field)
if text then return redis.error_reply(text) end
if tokens then tokens.settle(fence, field, ARGV[10], ARGV[11], life, removed == 1) end
local receivers = publish(channel, ARGV[3], PUBLISH)
if not l then return {1, receivers} end
local holder, pttl = '', 0
if redis.pcall('exists', key) == 0 then
  holder, pttl, receivers = lines.hand_on(key, l, fence, life, receivers, tonumber(ARGV[5]), own, p)
else -- a second field, which a stranger has added
  holder, pttl = lines.holder_of(key), lines.ask('pttl', key) or 0
end
local answer = lines.stand(l, line, ARGV[6], ARGV[7], ARGV[2], ARGV[9], ARGV[8], holder, pttl)
return {1, receivers, unpack(answer, 2)}
