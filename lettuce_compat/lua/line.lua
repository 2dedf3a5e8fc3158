-- The line: the clients that wait for a lock of any kind, in the order in which they came, in a hash beside the lock. A
-- counter in the hash gives the order, never a clock. All moments are the server's, in ms.
--   ':'          head tail places till contended: the numbers of the first and the last place; how many there are (those
--                between may be gone); until when the hash lives; 1: our holder knows that another client waits
--   's'          only where foreign clients were seen: open since seen: until when the lock is left to them, and how many
--                turns were not since; when one was seen last
--   'p'<number>  a place: client, number of its last command, call lease, until when it lives, secret word, and
--                what the kind of the lock adds
--   'c'<client>  the number of that client's place: it has one at most
-- Making the functions takes time, so a script makes them only if there is a line or its client is to wait in one.
local function line_of(line, client, multi)
  -- MOST_PLACES: a script examines no more places. MOST_LIFE, MOST_OPEN: moments further ahead come from a clock that was set
  -- back. FOREIGN: so long a foreign client that was seen counts.
  local MOST_PLACES, MOST_LIFE, MOST_OPEN, FOREIGN, OWN = 64, 30000, 1000, 10000, 'anteroom:client:'
  local f, time = line ~= KEYS[1] and redis.call('hmget', line, ':', 'c' .. client, 's') or {}, redis.call('time') -- the lock again: without its line
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local l = {now = now, head = 1, tail = 0, places = 0, till = 0, contended = '0', open = 0, since = 0, seen = 0, there = f[1], refusal = 0}
  local a, b, c, d, e = string.match(f[1] or '', '^(%d+) (%d+) (%d+) (%d+) (%d)$')
  if a then l.head, l.tail, l.places, l.till, l.contended = tonumber(a), tonumber(b), tonumber(c), tonumber(d), e end
  local open, since, seen = string.match(f[3] or '', '^(%d+) (%d+) (%d+)$')
  if open and tonumber(open) <= now + MOST_OPEN and math.abs(now - seen) < FOREIGN then -- else it is old, or the clock was set back
    l.open, l.since, l.seen = tonumber(open), tonumber(since), tonumber(seen)
  end

  -- at returns place number seq, nil where there is none. read: redis.call, where an error must not pass for that.
  local function at(seq, read)
    if l.own and l.own.seq == seq then return l.own end
    local text = (read or ask)('hget', line, 'p' .. seq)
    if not text then return nil end
    local c, n, lease, alive, word, more = string.match(text, '^(%S+) (%d+) (%d+) (%d+) (%S+)(.*)$')
    return c and {seq = seq, client = c, n = n, lease = lease, alive = tonumber(alive), word = word, more = more}
  end
  local own = f[2] and at(tonumber(f[2]), redis.call)
  if own and own.client == client then l.own = own end

  -- notify publishes a message on the channel of a client. p is its place, whose word proves that a script has sent it.
  function l.notify(c, what, p, more)
    if publish(OWN .. c, what .. ' ' .. (p and p.word or '-') .. ' ' .. more .. ' ' .. KEYS[1]) < 0 then l.refusal = -2 end
  end

  -- hears reports whether the client of a place is known to hear, or nobody can know.
  local function hears(p) return multi or p.client == client or (ask('pubsub', 'numsub', OWN .. p.client) or {'', 1})[2] > 0 end

  -- strike removes a place.
  function l.strike(p)
    redis.pcall('hdel', line, 'p' .. p.seq, 'c' .. p.client)
    l.changed, l.places = true, math.max(l.places - 1, 0)
    if p.seq == l.head then l.head = l.head + 1 elseif p.seq == l.tail then l.tail = l.tail - 1 end
    if p == l.own then l.own = nil end
  end

  -- entry is a place as the hash has it.
  local function entry(p)
    return string.format('%s %s %s %d %s%s', p.client, p.n, p.lease, p.alive, p.word, p.more)
  end

  -- living returns place number seq if it was confirmed within its life. Another one is removed.
  local function living(seq)
    local p = at(seq)
    if p and p.alive > now + MOST_LIFE then -- the clock was set back: its life begins now
      p.alive = now + MOST_LIFE
      redis.pcall('hset', line, 'p' .. seq, entry(p))
    end
    if p and p.alive >= now then return p end
    if p then l.strike(p) elseif seq == l.head then l.head, l.changed = seq + 1, true end
  end

  -- serve calls the first living place if accepts allows it, then the next, at most `most` of them. It stops at a place that
  -- accepts refuses, and returns it. It passes and keeps a place whose client is not subscribed, but calls the first of these
  -- if no client is. give makes a place the holder and returns what its client is to know, or nil. behind: the client of
  -- this command will wait behind them.
  function l.serve(most, accepts, give, behind)
    local unsubscribed, first
    local last = math.min(l.tail, l.head + MOST_PLACES - 1)
    local function call(p)
      local contended = (behind or unsubscribed or l.tail > p.seq) and '1' or '0'
      local said = give(p, contended)
      if not said then return false end
      l.strike(p)
      if p.client == client then l.got = said else l.notify(p.client, 'called', p, p.n .. ' ' .. said .. ' ' .. contended) end
      return true
    end
    for seq = l.head, last do
      local p = living(seq)
      if p and not hears(p) then
        unsubscribed = unsubscribed or p
      elseif p then
        if not accepts(p) then return p end
        if not call(p) then return end
        most = most - 1
        if most == 0 then return end
        behind, unsubscribed = behind or unsubscribed, nil
      end
    end
    first, unsubscribed = unsubscribed, nil
    if first and accepts(first) then call(first) end
    if last < l.tail and l.head > last then -- all that it may examine are dead: the last client in line continues
      local p = at(l.tail)
      if p then l.notify(p.client, 'retry', p, '0') end
    end
  end

  -- hint_retry asks the first living places whose clients hear, `many` of them, to confirm again in `ms`.
  function l.hint_retry(many, ms)
    for seq = l.head, math.min(l.tail, l.head + MOST_PLACES - 1) do
      local p = living(seq)
      if p and hears(p) then
        l.notify(p.client, 'retry', p, string.format('%d', ms))
        many = many - 1
        if many == 0 then return end
      end
    end
  end

  -- write writes the places' numbers, and what is given with them, in one command. The time to live moves at most once a
  -- second.
  local function write(till, ...)
    local moves = till > l.till
    if moves then l.till = till + 1000 end
    local header = string.format('%d %d %d %d %s', l.head, l.tail, l.places, l.till, l.contended)
    local failed = err(redis.pcall('hset', line, ':', header, ...))
    if moves and not failed then redis.pcall('pexpire', line, l.till - now) end
    l.changed = false
    return failed
  end

  -- remember notes what is known of foreign clients.
  local function remember() write(l.seen + FOREIGN, 's', string.format('%d %d %d', l.open, l.since, l.seen)) end

  -- leaves_open decides whether this turn is left to foreign clients, one of which was seen now where heard is true.
  function l.leaves_open(heard, window)
    if heard then l.seen = now end
    if l.seen == 0 then return false end
    l.since = (l.since + 1) % TURNS
    if l.since == 0 then l.open = now + window end
    remember()
    if l.since == 0 then l.hint_retry(2, window) end
    return l.since == 0
  end

  -- ahead counts the places before number seq. Far behind a gap it is an upper bound.
  function l.ahead(seq)
    local n = seq - l.head
    if n == 0 or n > MOST_PLACES or l.places == l.tail - l.head + 1 then return n end
    local names, count = {}, 0
    for i = l.head, seq - 1 do names[#names + 1] = 'p' .. i end
    for _, p in ipairs(ask('hmget', line, unpack(names)) or {}) do
      if p then count = count + 1 end
    end
    return count
  end

  -- keep_place confirms the place of the client, or makes one at the tail, and writes all that has changed. It notifies
  -- holder, if that is one of ours, once; foreign: it is not. Returns how many are ahead, or nil and an error text.
  function l.keep_place(p, holder, foreign)
    if l.contended == '0' then
      local c, n = string.match(holder, OURS)
      if c then l.notify(c, 'contended', nil, n) end
      l.contended = '1'
    end
    if foreign then
      l.seen, l.open = now, 0 -- one of them has come
      remember()
    end
    if not p.seq then
      l.tail, l.places = l.tail + 1, l.places + 1
      p.seq = l.tail
    end
    local failed = write(p.alive, 'p' .. p.seq, entry(p), 'c' .. p.client, p.seq)
    if failed then return nil, failed end
    return l.ahead(p.seq)
  end

  -- save writes what has changed. A line that says nothing any more goes.
  function l.save()
    if l.places == 0 and l.seen == 0 then
      if l.there then redis.pcall('pexpire', line, '0') end -- deletes it, by a right that is needed anyway
    elseif l.changed then
      write(0)
    end
  end

  return l
end

-- others_heard reports whether clients beside ours have heard of a release. Those that watch a pattern do not count.
local function others_heard(channel, receivers, own)
  return own >= 0 and receivers > own and (ask('pubsub', NUMSUB, channel) or {'', 0})[2] > own
end
