-- KEYS: n locks   ARGV: n fields
-- Answers one entry per lock: {count, number of fields, pttl}, 0 gone, or an error text.
local function status(key, field)
  local count = redis.pcall('hget', key, field)
  local text = err(count)
  if text and not is_wrong_type(text) then return text end
  if text or not count then
    local _, refused = remove(key, field)
    return refused or 0
  end
  return {tonumber(count) or 0, redis.call('hlen', key), redis.call('pttl', key)}
end

local out = {}
for i = 1, #KEYS do out[i] = status(KEYS[i], ARGV[i]) end
return out
