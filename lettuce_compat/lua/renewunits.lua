-- Renews units of locks: changes the end of each record, and nothing else. units.lua has the layout.
-- KEYS: n locks   ARGV: the lease in ms of most of them, n times the number under which the client's first units came and how many
-- it has; then for each lock that differs: its number, its lease; the client
-- Answers one entry per lock: twice the units that the record has, and 1 more if another client waits; 0 gone; or an error text.
-- Nothing here raises, unless somebody has damaged a record: then each lock is asked for alone.
local time, client, differs, terms, out = redis.call('time'), ARGV[#ARGV], {}, {}, {}
local now, first = time[1] * 1000 + math.floor(time[2] / 1000), prove(KEYS[1]) -- also a first write that a full memory allows

-- of says until when a record with that lease lasts, and its key lives: that outlasts each lease.
local function of(lease)
  local ends = now + lease
  terms[lease] = {ends = ends, text = string.format('%d', ends), life = lease + 1000, lives = string.format('%d', ends + 1000)}
  return terms[lease]
end

local function renew(key, grant, units, lease)
  local found, t = redis.pcall('hmget', key, ':', client), terms[lease] or of(lease)
  local text = first or found.err
  if text and not string.find(text, 'WRONGTYPE', 1, true) then return text end
  local n, had, till, contended, capacity = string.match(found[2] or '', '^(%d+) (%d+) (%d+) (%d)( %d+)$')
  if not n or tonumber(n) < tonumber(grant) or tonumber(had) < tonumber(units) or tonumber(till) <= now then return 0 end
  if t.ends > tonumber(till) then
    local record = n .. ' ' .. had .. ' ' .. t.text .. ' ' .. contended .. capacity
    local head, lives = string.match(found[1], '^(.* )(%d+)$')
    if t.ends > tonumber(lives) then -- it moves at most once a second
      text = err(redis.pcall('pexpire', key, t.life)) or err(redis.pcall('hset', key, ':', head .. t.lives, client, record))
    else
      text = err(redis.pcall('hset', key, client, record))
    end
  end
  return text or 2 * had + contended
end

for i = 2 * #KEYS + 2, #ARGV - 1, 2 do differs[tonumber(ARGV[i])] = ARGV[i + 1] end
for i = 1, #KEYS do out[i] = renew(KEYS[i], ARGV[2 * i], ARGV[2 * i + 1], differs[i] or ARGV[1]) end
return out
