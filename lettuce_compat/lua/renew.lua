-- KEYS: n locks   ARGV: the lease in ms of most of them, n fields; then for each lock that differs: its number, its lease
-- [, its note]: a note comes last, and for one lock only
-- Answers one entry per lock: 1 renewed, 0 gone, or an error text. Nothing here raises.
local function renew(key, field, lease, note)
  local here = redis.pcall('hexists', key, field)
  if here == 1 then return note and err(redis.pcall('hset', key, field, '1 ' .. note)) or raise(key, lease) or 1 end
  if err(here) and not string.find(err(here), 'WRONGTYPE', 1, true) then return err(here) end
  return prove(key) or 0
end

local differs, out = {}, {}
for i = #KEYS + 2, #ARGV - 1, 2 do differs[tonumber(ARGV[i])] = ARGV[i + 1] end
for i = 1, #KEYS do out[i] = renew(KEYS[i], ARGV[i + 1], differs[i] or ARGV[1], (#ARGV - #KEYS) % 2 == 0 and ARGV[#ARGV]) end
return out
