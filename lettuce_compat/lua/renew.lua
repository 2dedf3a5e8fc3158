-- KEYS: n locks, then the fencing records of those that may be taken again
-- ARGV: for each lock: field, lease ms, index of its fencing record in KEYS or 0
-- Answers one entry per lock: 1 renewed, 2 taken again, 0 gone, or an error text.
-- One bad key never fails the others: nothing here raises.
local function renew(key, field, lease, fence)
  local here = redis.pcall('hexists', key, field)
  if here == 1 then return raise(key, lease) or 1 end
  local text = err(here)
  if text and not is_wrong_type(text) then return text end
  local other_type = text
  local _, refused = remove(key, field)
  if refused then return refused end
  if fence and not other_type and redis.pcall('exists', key) == 0
    and redis.pcall('hget', fence, 'grantee') == field then
    return place(key, field, lease) or 2
  end
  return 0
end

local out = {}
for i = 1, #ARGV / 3 do
  out[i] = renew(KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], KEYS[tonumber(ARGV[3 * i])])
end
return out
