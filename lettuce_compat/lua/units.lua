-- The command of a client about an RWMutex or a Semaphore: what it has, keeps and wants, in units. The line is that of a
-- Mutex, and the holders are in the hash of the lock:
--   ':'       kind capacity held next till: rw or sem; the least capacity of those who hold; the sum of their units; no
--             lease ends before next; the key lives until till
--   <client>  number units ends contended capacity: of its last command, or of the one that was called; what it has, and
--             until when; 1: it knows that another client waits; what it takes for the capacity
-- A script at next, or after it, frees what is over and counts anew: a crash frees its own units, and no count drifts.
-- KEYS, ARGV: as in state.lua up to the sixth argument. Have is p a place, or units; behind the three t: a try, a: takes a
-- place though it has enough. Then 'kind capacity', and a space and the capacity that what it keeps counts with, if that is
-- more: a lesser one must be given anew [, life of the record [, last token]]
-- Answers 1 has what it wants, for the call lease, and nobody waits; 0 has nothing, -2 and a message to another client was
-- refused; {'void'} | {'lost'} | {'gone'}; {'has' | 'waits' | 'refused', token or '0', units, ms that are left to them, ms
-- until the next lease may end (0: nobody holds), least capacity, 1 another client waits | 0, places ahead, 0|-2}.
local key, line, fence, client, number, since, K = KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])
local time, h = redis.call('time'), {held = 0, next = 0, till = 0} -- the header
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kind, cap, of = string.match(ARGV[7], '^(%a+) (%d+) ?(%d*)$') -- of: that what it keeps counts with

-- Most often nobody else is there.
local alone = not fence and string.match(ARGV[4], '^0 0 ([1-9]%d*)t?$')
if alone and redis.call('exists', key, line) == 0 then
  local held, ends = ' ' .. alone .. ' ', string.format('%d', now + K)
  local text = err(redis.pcall('hset', key, ':', ARGV[7] .. held .. ends .. ' ' .. ends, client, ARGV[2] .. held .. ends .. ' 0 ' .. cap))
    or err(redis.pcall('pexpire', key, ARGV[5]))
  if text then redis.pcall('hdel', key, ':', client) end -- it would stay for ever
  return text and redis.error_reply(text) or 1
end

-- 0. What there is.
local have, keep, want, how = string.match(ARGV[4], '^(%w+) (%d+) (%d+)([ta]?)$')
local units, try = tonumber(have) or 0, how == 't' -- units: that it knows of
keep, want, cap = tonumber(keep), tonumber(want), tonumber(cap)
of = tonumber(of) or cap
local found = redis.pcall('hmget', key, ':', client)
local there = not err(found) and found[1]
local lined = redis.call('exists', key, line) > (there and 1 or 0)
local other -- an error: what is there instead
if not there and lined and redis.call('exists', key) == 1 or err(found) then
  local is, text = lock_of(key)
  other = not is and text or err(found) or 'WRONGTYPE the key holds a Mutex'
end
h.cap = cap
if there then
  local is, a, b, c, d = string.match(there, '^(%a+) (%d+) (%d+) (%d+) (%d+)$')
  if is ~= kind then other = 'WRONGTYPE the key holds ' .. (({rw = 'an RWMutex', sem = 'a Semaphore'})[is] or 'a lock of another kind') end
  h.cap, h.held, h.next, h.till = tonumber(a), tonumber(b), tonumber(c), tonumber(d)
end
if other then -- so what it has had is gone
  if units > 0 and string.find(other, 'WRONGTYPE', 1, true) then other = prove(key) end
  return other and redis.error_reply(other) or {'lost'}
end
if found[2] and not lined and not fence and units == h.held and keep + want == 0 then
  local n, had, ends = string.match(found[2], '^(%d+) (%d+) (%d+) ')
  if tonumber(had) == units and tonumber(n) >= since and tonumber(n) < number and tonumber(ends) > now then
    local text = err(redis.pcall('pexpire', key, '0')) -- deletes it, by a right that is needed anyway
    return text and redis.error_reply(text) or 0
  end
end
local lease, life, flags, word = string.match(ARGV[6], '^(%d+) (%d+) (%S+) (%S+)$')
local l = lined and line ~= key and line_of(line, client, string.find(flags, 'm', 1, true))

-- record_of is what the hash has of a client. Units whose lease is over are none.
local function record_of(text)
  local a, b, c, d, e = string.match(text or '', '^(%d+) (%d+) (%d+) (%d) (%d+)$')
  if not a then return {n = 0, units = 0, ends = 0, contended = '0', cap = cap} end
  return {n = tonumber(a), units = tonumber(c) > now and tonumber(b) or 0, ends = tonumber(c), contended = d, cap = tonumber(e)}
end
local function text_of(q) return string.format('%d %d %d %s %d', q.n, q.units, q.ends, q.contended, q.cap) end
local function header() return string.format('%s %d %d %d %d', kind, h.cap, h.held, h.next, h.till) end
local r = record_of(found[2])

-- count adds what a client has to the header.
local function count(q)
  local alone = h.held == 0
  h.cap, h.next = alone and q.cap or math.min(h.cap, q.cap), alone and q.ends or math.min(h.next, q.ends)
  h.held = h.held + q.units
end

-- scan counts anew. What this client has may not be in the hash yet.
local scanned
local function scan()
  scanned = true
  local all = ask('hgetall', key)
  if not all then return end
  h.held, h.cap = 0, cap
  if r.units > 0 then count(r) end
  for i = 1, #all, 2 do
    local q = all[i] ~= client and all[i] ~= ':' and record_of(all[i + 1])
    if q and q.units > 0 then count(q) elseif q then redis.pcall('hdel', key, all[i]) end
  end
end

-- put writes what a client has, with the header. The key lives until the last lease is over; its time to live moves at most
-- once a second. Returns an error text or nil.
local function put(c, q)
  local till = q.ends > h.till and q.ends + 1000
  local text = till and there and err(redis.pcall('pexpire', key, till - now))
  if text then return text end
  h.till = till or h.till
  text = err(redis.pcall('hset', key, ':', header(), c, text_of(q)))
  if text or there then return text end
  text = err(redis.pcall('pexpire', key, h.till - now))
  if text then redis.pcall('hdel', key, ':', c) end
  there = not text
  return text
end

-- token_of makes the token of a grant, '0' without a record. A writer's is as that of a Mutex. Readers have that of the record, which
-- the first of them raises halfway to now: above all that the last writer may have handed out, and below what the next one gets.
local function token_of(q, first)
  if not fence then return '0' end
  local last = q.units < q.cap and tonumber(ask('get', fence) or '')
  if not last then return new_token(fence, ARGV[8]) end
  local since_then = math.max(time[1] * 1000000 + time[2] - last, 0)
  if first then last_token(fence, string.format('%.0f', last + math.floor(since_then / 2)), ARGV[8]) end
  return ask('get', fence)
end

-- 1, 2. What the client has.
if r.n >= number or l and l.own and tonumber(l.own.n) >= number then return {'void'} end
if there and now >= h.next then scan() end
local gone = have == 'p' and r.units == 0 and not (l and l.own and tonumber(l.own.n) >= since) and 'gone'
  or units > 0 and (r.units < units or r.n < since or keep > 0 and r.cap > of) and 'lost'
local token, text = '0', (gone or r.units > 0 or want == 0 or try) and prove(key) or nil
if not text and fence and ARGV[9] then last_token(fence, ARGV[9], ARGV[8]) end
if gone and not text then return {gone} end
local had = r.units
local kept = math.min(had, keep)
if not text and kept > units then token, text = token_of({units = kept, cap = cap}, h.held == had) end -- its call was not heard
if text then return redis.error_reply(text) end

-- 3. What it does not keep is free from here on. What it knows of, and keeps, has the lease.
if kept >= want and r.cap <= cap then of = cap end -- a call has given it with the lesser capacity
local less = r.cap < of and r.cap == h.cap -- the least may not be what it was
h.held, r.n, r.units, r.cap = h.held - had, number, kept, of
r.ends = kept == 0 and 0 or units > 0 and math.max(r.ends, now + lease) or r.ends
if kept > 0 then count(r) else scanned = nil end -- what it had counts no more
if kept > 0 and less and h.held > kept then scan() end

-- 4. Its place.
local in_line = want > kept or how == 'a' or kept > 0 and cap < of
if l and l.own and (try or not in_line) then l.strike(l.own) end
local p = in_line and (l and l.own or {client = client})
if p then
  p.n, p.lease, p.alive, p.word = ARGV[2], ARGV[5], now + life, word
  p.more = string.format(' %s %d %d %d', kind, want, cap, kept)
end

-- suffices reports whether what the place wants exceeds nobody's capacity, that of the place's client or of a holder. What its
-- client has already does not count. A place of a lock of another kind blocks until it ends.
local function suffices(q)
  local is, wants, its, keeps = string.match(q.more, '^ (%a+) (%d+) (%d+) (%d+)$')
  if is ~= kind then return false end
  q.want, q.cap, q.kept, q.record = tonumber(wants), tonumber(its), tonumber(keeps), q.client == client and r or record_of(ask('hget', key, q.client))
  local others = h.held - q.record.units
  if others > 0 and h.cap < q.cap and others + q.want <= q.cap and not scanned then -- who had so little may have left
    scan()
    others = h.held - q.record.units
  end
  return others + q.want <= (others > 0 and math.min(h.cap, q.cap) or q.cap)
end

-- give gives a place what it wants. The client's own record is written at the end. If that of another cannot be, its units
-- count until a scan. What a client had beside its place may be gone: it learns of that by the least number, which is below
-- every since of units.
local function give(q, contended)
  local was, ends, made = q.record, math.max(q.record.ends, now + q.lease), nil
  local to = {n = was.units < q.kept and 1000000000000000 or q.n, units = math.max(q.want, was.units), ends = ends, contended = contended, cap = q.cap}
  made, text = token_of(to, h.held == 0)
  if not made then return nil end
  h.held = h.held - was.units
  count(to)
  if q.client == client then r, token = to, made else text = put(q.client, to) end
  if text then return nil end
  if l and contended == '0' then l.contended = '0' end
  return string.format('%d %s', to.units, made)
end

-- 5. The line: its first places have what they want, up to the first one for which the capacity does not suffice. A new place
-- does not pass that one.
local blocked = l and l.serve(65, suffices, give, p and not p.seq and not try)
local waits = p and not (l and l.got)
if waits and not text and (not l or l.places == 0) and suffices(p) and give(p, '0') then waits = false end
local ahead, stays = 0, waits and not try
if stays and not p.seq and kept == had and redis.acl_check_cmd and not redis.acl_check_cmd('publish', 'anteroom:client:' .. client, '') then
  text = "NOPERM this user has no permissions to publish on clients' channels (anteroom:client:*)" -- it will have to call others
end
if text and waits and kept == had then
  if l then l.save() end
  return redis.error_reply(text)
end
if stays then l, blocked = l or line_of(line, client, string.find(flags, 'm', 1, true)), blocked or p end

-- Each holder hears once that somebody waits whom it blocks: 2 in the header of the line, and some have not.
if line ~= key then r.contended = l and l.places > (l.own and 1 or 0) and blocked ~= p and '1' or '0' end -- else nobody knows
if blocked and l.contended ~= '1' then
  local all, left = ask('hgetall', key) or {}, 256 -- so many are notified in a script
  l.contended, l.changed = '1', true
  for i = 1, #all, 2 do
    local c, q = all[i], record_of(all[i + 1])
    if q.units > 0 and q.contended == '0' and c ~= client and c ~= blocked.client then
      left, q.contended = left - 1, '1'
      if left < 0 then
        l.contended = '2'
        break
      end
      redis.pcall('hset', key, c, text_of(q))
      l.notify(c, 'contended', nil, string.format('%d', q.n))
    end
  end
end
if stays then
  ahead, text = l.keep_place(p, '')
  if not ahead and kept == had then return redis.error_reply(text) end
elseif l then
  l.save()
end

-- 6. What has changed, and the answer.
if h.held == 0 then
  text = there and err(redis.pcall('pexpire', key, '0'))
elseif r.units > 0 then
  text = put(client, r)
else
  if found[2] then redis.pcall('hdel', key, client) end
  text = there ~= header() and err(redis.pcall('hset', key, ':', header()))
end
if text then return redis.error_reply(text) end
if want == 0 and r.units == 0 then return l and l.refusal or 0 end
if not l and not fence and not waits and had == 0 and h.cap == cap then return 1 end
return {waits and (stays and ahead and 'waits' or 'refused') or 'has', token, r.units, r.units > 0 and r.ends - now or 0,
  h.held > 0 and math.max(h.next - now, 1) or 0, h.cap, tonumber(r.contended), ahead or 0, l and l.refusal or 0}
