-- KEYS: lock, line, fencing record   ARGV: s where strings are locks
-- Answers {type, pttl, {field, count, ...}, newest token, subscribers or -1, places, the first one's client and number or '',
-- ms for which the lock is still left to foreign clients}. It changes nothing.
local key, line, fence = KEYS[1], KEYS[2], KEYS[3]
local kind, fields = lock_of(key, ARGV[1] == 's')
if not kind then return redis.error_reply(fields) end
local l, first = line_of(line, ''), ''
for seq = l.head, math.min(l.tail, l.head + 63) do
  local client, n = string.match(ask('hget', line, 'p' .. seq) or '', '^(%S+) (%d+) ')
  if client then
    first = client .. ':' .. n
    break
  end
end
local count = ask('pubsub', NUMSUB, BEFORE .. key .. AFTER)
return {kind, redis.call('pttl', key), fields, ask('get', fence) or '', count and count[2] or -1, l.places, first, math.max(l.open - l.now, 0)}
