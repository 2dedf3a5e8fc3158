-- KEYS: n locks, then their lines
-- ARGV: ears, 1 where NUMSUB knows nothing, then for each lock a field and its attempt
-- Answers one entry per lock: {1, places ahead, pttl, holder} standing, {2, pttl} the field holds the lock,
-- 0 neither, or an error text. Never makes a place, and never gives the lock to a field without one.
-- One bad key never fails the others: nothing here raises.
local lines = line_functions()

local function confirm(key, line, field, attempt)
  local here = redis.pcall('hexists', key, field)
  if err(here) then return err(here) end
  if here == 1 then return {2, lines.ask('pttl', key) or 0} end
  local client = lines.split(field)
  local l = is_there(line) and lines.read(line)
  local p = l and lines.of(l, client)
  if not p or p.field ~= field then
    local _, text = remove(key, field)
    return text or 0
  end
  if lines.older(p.attempt, attempt) then p.attempt = attempt end
  p.ears = ARGV[1]
  local holder, pttl = '', lines.ask('pttl', key) or 0
  if pttl ~= -2 then holder = lines.holder_of(key) end
  local text = lines.put(l, p, holder)
  if text then return text end
  if pttl == -2 then
    -- Free without a script: its lease is over, or somebody has deleted it.
    pttl = l.open - l.now
    if pttl <= 0 then
      pttl = 1
      local called = lines.first(l, client, ARGV[2] == '1')
      local lease = called and lines.call(key, l, nil, nil, called)
      lines.save(l)
      if lease then
        if called.field == field then return {2, lease} end
        holder, pttl = called.field, lease
      end
    end
  end
  local n, ms = lines.standing(l, p, holder, pttl)
  return {1, n, ms, holder}
end

local out, n = {}, #KEYS / 2
for i = 1, n do out[i] = confirm(KEYS[i], KEYS[n + i], ARGV[2 * i + 1], ARGV[2 * i + 2]) end
return out
