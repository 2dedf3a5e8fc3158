-- KEYS: lock, line (the lock again: without one), fencing record   ARGV: most fields to list
-- Answers {type, pttl, {field, count, ...}, counter, subscribers or -1, places, the first one's field or '',
-- ms that the lock is still left open}.
local key, line, fence = KEYS[1], KEYS[2], KEYS[3]
local kind = redis.call('type', key)['ok']
local holders = {}
if kind == 'hash' and redis.call('hlen', key) <= tonumber(ARGV[1]) then
  holders = redis.call('hgetall', key)
end
local lines = line_functions()
local counter = fencing().newest(fence)
if err(counter) then counter = '' end
local standing, head, open = 0, '', 0
local l = line ~= key and is_there(line) and lines.read(line)
if l then
  standing, open = lines.places(l), math.max(l.open - l.now, 0)
  for seq = l.head, math.min(l.tail, l.head + 63) do
    local p = lines.at(l, seq)
    if p then
      head = p.field
      break
    end
  end
end
return {kind, redis.call('pttl', key), holders, counter or '', lines.numsub(BEFORE .. key .. AFTER, NUMSUB) or -1, standing, head, open}
