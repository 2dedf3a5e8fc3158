-- KEYS: n locks   ARGV: n fields
-- Answers one entry per lock: {count, number of fields, pttl}, 0 gone, or an error text; 1 + pttl where the count is 1,
-- the field is alone and the time to live has an end.
local function status(key, field)
  local count = redis.pcall('hget', key, field)
  if err(count) and not string.find(err(count), 'WRONGTYPE', 1, true) then return err(count) end
  if err(count) or not count then return prove(key) or 0 end
  local fields, ttl = redis.call('hlen', key), redis.call('pttl', key)
  if count == '1' and fields == 1 and ttl >= 0 then return 1 + ttl end
  return {tonumber(note_of(count) and '1' or count) or 0, fields, ttl}
end

local out = {}
for i = 1, #KEYS do out[i] = status(KEYS[i], ARGV[i]) end
return out
