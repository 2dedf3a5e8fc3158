-- KEYS: n locks, then their lines
-- ARGV: mode, then for each lock a field and the number of the attempt
-- Answers one entry per lock: {1, places before it, pttl, holder} it stands in line, {2, pttl} it has the lock,
-- 0 neither, or an error text. It makes no place, and takes the lock for no field that has none.
local n = #KEYS / 2

local function confirm(key, name, field, attempt)
  local here = redis.pcall('hexists', key, field)
  local text = err(here)
  if text and not is_wrong_type(text) then return text end
  if here == 1 then return {2, redis.call('pttl', key)} end
  local line = open_line(name, ARGV[1])
  if not line then return 'ANTEROOM the line cannot be used' end
  local client = split(field)
  local p = place_of(line, client)
  if not p or p.field ~= field then
    local _, refused = remove(key, field)
    return refused or 0
  end
  p.attempt = math.max(p.attempt, tonumber(attempt))
  text = write_place(line, p)
  if text then return text end
  local holder, ttl = '', rest(line)
  if redis.pcall('exists', key) == 1 then
    if redis.pcall('hlen', key) == 1 then holder = redis.call('hkeys', key)[1] end
    ttl = redis.call('pttl', key)
    if holder ~= '' and not calls(holder) then redis.pcall('hset', line.key, 'stranger', moment(line)) end
  elseif ttl == 0 then
    -- Its lease has ended without a script, or somebody deleted it.
    local next = first_live(line, client)
    if next and call(key, line, next) then holder, ttl = next.field, redis.call('pttl', key) end
  end
  save(line)
  if holder == field then return {2, ttl} end
  return {1, p.number - line.head, ttl, holder}
end

local out = {}
for i = 1, n do out[i] = confirm(KEYS[i], KEYS[n + i], ARGV[2 * i], ARGV[2 * i + 1]) end
return out
