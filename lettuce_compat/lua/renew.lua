-- KEYS: n locks, then the fencing records of those that may be taken again
-- ARGV: n, the lease in ms of most of them, n fields; then for each lock that differs:
-- its number, its lease, the index of its fencing record in KEYS or 0, and that record's life in ms
-- Answers one entry per lock: 1 renewed, 2 taken again, 0 gone, or an error text.
-- One bad key never fails the others: nothing here raises.
local tokens = #KEYS > tonumber(ARGV[1]) and fencing()
local function renew(key, field, lease, fence, life)
  local here = redis.pcall('hexists', key, field)
  -- The record must be there when the lock has to be taken again. Half of its life is
  -- longer than a lease, so that it need not be written with each renewal.
  if fence then tokens.outlast(fence, life, life / 2) end
  if here == 1 then return raise(key, lease) or 1 end
  local text = err(here)
  if text and not is_wrong_type(text) then return text end
  local other_type = text
  local _, refused = remove(key, field)
  if refused then return refused end
  if fence and not other_type and redis.pcall('exists', key) == 0
    and redis.pcall('hget', fence, 'grantee') == field then
    return take(key, field, lease) or 2
  end
  return 0
end

local n, lease = tonumber(ARGV[1]), ARGV[2]
local differ = {}
for i = n + 3, #ARGV, 4 do differ[ARGV[i]] = i end
local out = {}
for i = 1, n do
  local at = #ARGV > n + 2 and differ[tostring(i)]
  if at then
    out[i] = renew(KEYS[i], ARGV[i + 2], ARGV[at + 1], KEYS[tonumber(ARGV[at + 2])], tonumber(ARGV[at + 3]))
  else
    out[i] = renew(KEYS[i], ARGV[i + 2], lease)
  end
end
return out
