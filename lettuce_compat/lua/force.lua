-- Ends whatever holds a lock. Only state.lua calls the next one: who stands is told to state again.
-- KEYS: lock, line   ARGV: release message, s where strings are locks, m where NUMSUB knows nothing
-- Answers the fields that were deleted, '' for a string.
local key, line = KEYS[1], KEYS[2]
local kind, all = lock_of(key, ARGV[2] == 's')
if not kind then return redis.error_reply(all) end
local l = line_of(line, '', ARGV[3] == 'm')
local text = prove(key)
if text then return redis.error_reply(text) end
local fields = {}
if kind ~= 'none' then
  redis.call('del', key)
  if kind == 'string' then fields[1] = '' end
  for i = 1, #all, 2 do
    local client, n = string.match(all[i], OURS)
    if client then l.tell(client, 'forced', nil, n) end
    fields[#fields + 1] = all[i]
  end
  publish(BEFORE .. key .. AFTER, ARGV[1], PUBLISH)
end
l.look(2, math.max(l.open - l.now, 0))
if l.changed then l.save() end
return fields
