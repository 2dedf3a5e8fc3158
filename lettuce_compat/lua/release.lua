-- KEYS: lock, line (the lock again: without one) [, fencing record]
-- ARGV: field, message, own subscriptions of the release channel (-1: NUMSUB knows nothing), ms that the
-- lock stays open for those who do not stand [, keep ms, last token, reserved up to, life of the record in ms]
-- Answers the number of receivers (-1: it cannot be told, -2: who was called could not be told) released,
-- {3, 0} only a place was there, {2, 0} only the mark was there, {0, 0} gone.
local key, line, fence, field, own, keep = KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[3]), ARGV[5] or '0'
if line == key then line = nil end

local kept = keep ~= '0' and redis.pcall('hexists', key, field) == 1
if kept then
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
if fence then fencing().settle(fence, field, ARGV[6], ARGV[7], ARGV[8], removed == 1) end
local receivers = 0
if removed == 1 then receivers = publish(BEFORE .. key .. AFTER, ARGV[2], PUBLISH) end

local left = false
-- Whoever listens beside us gets its turns, also where nobody of ours stands.
local lines = line and (is_there(line) or receivers > math.max(own, 0)) and line_functions()
local l = lines and lines.read(line)
if l then
  left = lines.leave(l, field)
  l.multi = SHARDED or own < 0
  if kept then
    lines.look(l, 1, keep)
  elseif redis.pcall('exists', key) == 0 and l.open <= l.now then
    local _
    _, _, receivers = lines.hand_on(key, l, fence, ARGV[8], receivers, tonumber(ARGV[4]), own)
  elseif left then
    -- It may have been told to look when the lock is open to it, or a mark ends; now the next ones are.
    local pttl, holder = lines.ask('pttl', key) or 0, lines.holder_of(key)
    l.stays = holder ~= '' and holder == l.mute
    if pttl == -2 then
      lines.look(l, 2, l.open - l.now)
    elseif pttl > 0 and string.find(holder, ':kept$') then
      lines.look(l, 1, pttl)
    end
  end
  lines.save(l)
end

if removed == 1 then return receivers end
if left then return {3, 0} end
-- A repeated release finds the mark of the first one: nothing was removed by this one.
if redis.pcall('hexists', key, field .. ':kept') == 1 then return {2, 0} end
return {0, 0}
