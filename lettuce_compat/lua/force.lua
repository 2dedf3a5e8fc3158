-- Ends every hold of a lock, and gives the lock to a place where one is named.
-- KEYS: lock, line (the lock again: without it) [, fencing record]
-- ARGV: release message, or with a place one that announces none, s where strings are locks, m where NUMSUB knows nothing
-- [, the field that it is taken from ('': any), client, number of its place, number of the unit, call lease, life of the record]
-- Answers the fields that were deleted, '' for a string. With a place: {'has', token or '', 1 another client waits | 0, lease}. Nothing
-- has changed where it answers {'place'}, the place is not there under that number, or {'gone'}, the field is not there.
local key, line, fence, from, client = KEYS[1], KEYS[2], KEYS[3], ARGV[4], ARGV[5]
local kind, all = lock_of(key, ARGV[2] == 's')
local units = not kind and not from and string.find(ask('hget', key, ':') or '', '^%a+ %d+ %d+ %d+ %d+$') -- see units.lua
if units then kind, all = 'hash', redis.call('hgetall', key) end
if not kind then return redis.error_reply(all) end
local l = line_of(line, client or '', ARGV[3] == 'm')
local text, token, lease = prove(key), '', nil
if text then return redis.error_reply(text) end
if from then
  if not l.own or l.own.n ~= ARGV[6] then return {'place'} end
  if from ~= '' and ask('hexists', key, from) ~= 1 then return {'gone'} end
  if fence then token, text = new_token(fence, ARGV[9]) end
  if not text and kind == 'string' then redis.call('del', key) end
  lease = from ~= '' and math.max(tonumber(ARGV[8]), ask('pttl', key) or 0) or ARGV[8]
  text = text or take(key, client .. ':' .. ARGV[7], lease)
  if text then return redis.error_reply(text) end
elseif kind ~= 'none' then
  redis.call('del', key)
end
local fields = {kind == 'string' and '' or nil}
for i = 1, #all, 2 do
  local c, n = string.match(units and all[i] .. ':' .. string.sub(all[i + 1], 1, 16) or all[i], OURS)
  if from then redis.pcall('hdel', key, all[i]) end
  if c then l.notify(c, 'forced', nil, n) end
  fields[#fields + 1] = all[i]
end
if from then
  l.strike(l.own)
  l.contended = l.places > 0 and '1' or '0'
  publish(BEFORE .. key .. AFTER, ARGV[1], PUBLISH)
else
  if kind ~= 'none' then publish(BEFORE .. key .. AFTER, ARGV[1], PUBLISH) end
  l.hint_retry(2, math.max(l.open - l.now, 0))
end
if l.changed then l.save() end
return from and {'has', token, tonumber(l.contended), tonumber(lease)} or fields
