-- KEYS: n locks   ARGV: the lease in ms of most of them, n fields; then for each lock that differs: its number, its lease
-- [, 'note', the note of the first, a message for the release channel]
-- Answers one entry per lock: 1 renewed, 0 gone, or an error text. Nothing here raises.
local function renew(key, field, lease)
  local here = redis.pcall('hexists', key, field)
  if here == 1 then return raise(key, lease) or 1 end
  if err(here) and not string.find(err(here), 'WRONGTYPE', 1, true) then return err(here) end
  return prove(key) or 0
end

local differs, out, last = {}, {}, #ARGV
if ARGV[last - 2] == 'note' then last = last - 3 end
for i = #KEYS + 2, last, 2 do differs[tonumber(ARGV[i])] = ARGV[i + 1] end
for i = 1, #KEYS do out[i] = renew(KEYS[i], ARGV[i + 1], differs[i] or ARGV[1]) end
if last < #ARGV and out[1] == 1 then
  out[1] = err(redis.pcall('hset', KEYS[1], ARGV[2], '1 note: ' .. ARGV[last + 2])) or 1
  if out[1] == 1 then publish(BEFORE .. KEYS[1] .. AFTER, ARGV[last + 3], PUBLISH) end
end
return out
