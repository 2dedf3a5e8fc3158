-- KEYS: lock, line, fencing record (or the lock again: without line and record)   ARGV: s where strings are locks
-- Answers {type, pttl, {field, count, ...}, newest token, subscribers or -1, places, the first one's client and number or '',
-- ms for which the lock is still left to foreign clients}. It changes nothing.
local key, line, fence = KEYS[1], KEYS[2], KEYS[3]
local kind, fields = lock_of(key, ARGV[1] == 's')
local units = not kind and string.find(ask('hget', key, ':') or '', '^%a+ %d+ %d+ %d+ %d+$') -- see units.lua
if units then kind, fields = 'hash', redis.call('hgetall', key) end
if not kind then return redis.error_reply(fields) end
local l, first = line_of(line, ''), ''
for seq = math.min(l.tail, l.head + 63), l.head, -1 do
  first = string.gsub(ask('hget', line, 'p' .. seq) or first, '^(%S+) (%d+) .*', '%1:%2')
end
local count = ask('pubsub', NUMSUB, BEFORE .. key .. AFTER)
return {kind, redis.call('pttl', key), fields, fence and ask('get', fence) or '', count and count[2] or -1, l.places, first, math.max(l.open - l.now, 0)}
