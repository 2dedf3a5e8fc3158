-- KEYS: n locks, then the fencing records of those that may be taken again
-- ARGV: n, the lease in ms of most of them, n fields; then for each lock that differs: its number, its lease,
-- the lease when it is taken again, the index of its fencing record in KEYS or 0
-- Answers one entry per lock: 1 renewed, 2 taken again, 0 gone, or an error text. Nothing here raises.
local function renew(key, field, lease, call, fence)
  local here = redis.pcall('hexists', key, field)
  if here == 1 then return raise(key, lease) or 1 end
  if err(here) and not string.find(err(here), 'WRONGTYPE', 1, true) then return err(here) end
  if prove(key) then return prove(key) end
  if fence and redis.pcall('exists', key) == 0 and ask('hget', fence, 'grantee') == field then
    return take(key, field, call) or 2
  end
  return 0
end

local n, lease, differ, out = tonumber(ARGV[1]), ARGV[2], {}, {}
for i = n + 3, #ARGV, 4 do differ[tonumber(ARGV[i])] = i end
for i = 1, n do
  local at = differ[i]
  out[i] = renew(KEYS[i], ARGV[i + 2], at and ARGV[at + 1] or lease, at and ARGV[at + 2], at and KEYS[tonumber(ARGV[at + 3])])
end
return out
