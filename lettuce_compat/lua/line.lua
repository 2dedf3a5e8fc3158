-- The line: the processes that wait for a lock, in the order in which they came, in a hash beside
-- the lock. Order is a counter in it and never a clock.
--   head, tail   numbers of the first and of the last place; places between them may be gone
--   p<number>    a place: field, attempt, lease in ms, tokens wanted, ears, the moment at which it
--                was confirmed. Ears: 0 its client hears what is published on its own channel, 1 it
--                does not, 2 it may not publish either
--   c<client>    the number of that client's place: it has one at most
--   open         until then the lock is left to those who do not stand
--   since        turns since it was left to them
--   stranger     when a holder was seen that calls nobody
--   mute         the holder, if it cannot tell whom it calls
-- All moments are the server's, in ms since 1970. Nothing here decides who holds the lock, so a
-- line that cannot be read or written is no line: nobody stands, and a free lock is free.

-- place_functions makes the functions about it. To make a function, and to give it a local of
-- outside itself, costs some of Redis' time for each call of the script: so they are made only
-- where there is a line, or somebody is to stand, and what they alone need is inside.
local function place_functions()
  local PLACE_LIFE = 30000  -- a place lives for so long, or for its lease if that is shorter
  local LOOKS = 64          -- so many places a script looks at
  local STRANGER = 10000    -- so long a stranger that was seen counts
  local MONITOR = 16        -- so many calls at least lie between two turns that end open for pattern subscribers; and so
                            -- many places ask in one BLIND, the next as many in two, and so on
  local MOST_OPEN = 1000    -- a moment further ahead comes from a clock that was set back
  local BLIND = 25          -- so long waits who cannot be told before it asks

  local OWN = 'anteroom:client:'

  -- ask is a protected call that returns nil for an error: a script that has written must not fail.
  local function ask(...)
    local answer = redis.pcall(...)
    if not err(answer) then return answer end
  end

  -- numsub returns the number of subscribers of a channel, or nil where it cannot be known. how is
  -- the question, if it is not NUMSUB.
  local function numsub(channel, how)
    local count = ask('pubsub', how or 'numsub', channel)
    return count and tonumber(count[2])
  end

  -- tell publishes a message on a client's own channel.
  local function tell(client, message)
    return publish(OWN .. client, message)
  end

  -- holder_of returns the first field of a lock. A large hash is somebody's data, not a lock: its
  -- names are not fetched.
  local function holder_of(key)
    if (ask('hlen', key) or LOOKS + 1) > LOOKS then return '' end
    return (ask('hkeys', key) or {})[1] or ''
  end

  -- split returns the client of a field of ours and its number in digits, nil for others' fields.
  local function split(field)
    return string.match(field, OURS)
  end

  -- older tells which of two numbers in digits is the smaller one.
  local function older(a, b)
    return #a < #b or #a == #b and a < b
  end

  -- is_stranger tells whether whoever releases the field calls nobody: no client of ours, or one
  -- of a version without the line, whose fields have small numbers. A mark of MinHold is ours.
  local function is_stranger(field)
    local _, n = split((string.gsub(field, ':kept$', '')))
    return field ~= '' and not (n and #n > 15)
  end

  -- read returns what the line says about itself, an empty one where there is none, nil where it
  -- cannot be read.
  local function read(line)
    if not line then return nil end
    local f = ask('hmget', line, 'head', 'tail', 'open', 'since', 'stranger', 'mute')
    local time = f and ask('time')
    if not time then return nil end
    local l = {
      key = line, now = time[1] * 1000 + math.floor(time[2] / 1000), words = 0,
      head = tonumber(f[1]) or 1, tail = tonumber(f[2]) or 0, open = tonumber(f[3]) or 0,
      since = tonumber(f[4]) or 0, stranger = tonumber(f[5]) or 0, mute = f[6],
    }
    for i = 1, 6 do
      if f[i] then l.words = l.words + 1 end
    end
    if l.open > l.now + MOST_OPEN then l.open = 0 end
    return l
  end

  -- places counts the places. Each is two entries of the hash, beside the words of the line.
  local function places(l)
    return ((ask('hlen', l.key) or l.words) - l.words) / 2
  end

  -- at returns place number seq, nil where there is none.
  local function at(l, seq)
    local text = ask('hget', l.key, 'p' .. seq)
    if not text then return nil end
    local p = {seq = seq}
    p.field, p.client, p.n, p.attempt, p.lease, p.tokens, p.ears, p.confirmed =
      string.match(text, '^(([%w%._%-]+):(%d+)) (%d+) (%d+) (%d+) ([012]) (%d+)$')
    return p.field and p
  end

  -- of returns the place of a client, nil where it has none.
  local function of(l, client)
    local seq = ask('hget', l.key, 'c' .. client)
    return seq and at(l, tonumber(seq)) or nil
  end

  -- entry is a place as the hash has it.
  local function entry(p)
    return table.concat({p.field, p.attempt, p.lease, p.tokens, p.ears, p.confirmed}, ' ')
  end

  -- hears tells whether the client of a place hears its own channel, as far as is known: that is taken
  -- from NUMSUB, and where that knows nothing (multi: on a Cluster, and of a client that confirms
  -- often because it hears nothing) believed.
  local function hears(p, multi)
    return multi or p.ears ~= '0' or numsub(OWN .. p.client) ~= 0
  end

  -- strike removes a place.
  local function strike(l, p)
    redis.pcall('hdel', l.key, 'p' .. p.seq, 'c' .. p.client)
    l.struck = true
    if p.seq == l.head then
      l.head, l.changed = l.head + 1, true
    elseif p.seq == l.tail then
      l.tail, l.changed = l.tail - 1, true
    end
  end

  -- living returns place number seq if its client has confirmed it within its life. Another one
  -- is removed, and the head of the line moves on over what is gone.
  local function living(l, seq)
    local p = at(l, seq)
    if p then
      local confirmed = tonumber(p.confirmed)
      if confirmed > l.now then -- the clock was set back: its life begins now
        p.confirmed = tostring(l.now)
        redis.pcall('hset', l.key, 'p' .. seq, entry(p))
      elseif confirmed + math.min(tonumber(p.lease), PLACE_LIFE) < l.now then
        strike(l, p)
        l.dead, p = (l.dead or 0) + 1, nil
      end
    end
    if not p and seq == l.head then l.head, l.changed = seq + 1, true end
    return p
  end

  -- lives sees to it that the line lives for ms more. It ends by itself when nobody confirms.
  local function lives(l, ms)
    if (ask('pttl', l.key) or 0) < ms then redis.pcall('pexpire', l.key, ms) end
  end

  -- save writes what has changed. A line without places goes, unless it is open or was lately, counts
  -- turns, or knows of a stranger or of a holder that is mute; it ends by itself then. There may be
  -- numbers in it still: of places that went before those ahead of them.
  local function save(l)
    if l.struck and l.head <= l.tail and ask('hlen', l.key) == l.words then
      l.head, l.changed = l.tail + 1, true
    end
    if l.head > l.tail and not l.stays and l.since == 0 and l.open + MOST_OPEN <= l.now and math.abs(l.now - l.stranger) >= STRANGER then
      redis.pcall('del', l.key)
    elseif l.changed then
      redis.pcall('hset', l.key, 'head', l.head, 'tail', l.tail, 'since', l.since, 'open', l.open)
      if l.words == 0 or l.since > 0 or l.open > l.now then lives(l, MOST_OPEN) end -- it may have begun with this
    end
  end

  -- first returns the first living place whose client hears, or the first living one where nobody
  -- does: one that stays deaf costs the others a call lease, and a subscription is soon made anew.
  -- That it hears is known of the client me, which asks. A place that is passed over stays. not_me
  -- leaves out the place of me.
  -- Without a place it returns nil, and whether there were more than it may look at.
  local function first(l, me, multi, not_me)
    local passed
    l.multi = multi
    local last = math.min(l.tail, l.head + LOOKS - 1)
    for seq = l.head, last do
      local p = living(l, seq)
      if p and not (not_me and p.client == me) then
        if p.client == me or hears(p, multi) then
          p.passed = passed
          return p
        end
        passed = passed or p
      end
    end
    return passed, last < l.tail
  end

  -- note_mute notes that the holder cannot tell whom it will call, so that the next ones ask.
  local function note_mute(l, field, lease)
    redis.pcall('hset', l.key, 'mute', field)
    lives(l, math.min(tonumber(lease), PLACE_LIFE))
    if not l.mute then l.words = l.words + 1 end
    l.mute, l.stays = field, true
  end

  -- seen tells whether a holder was seen lately that does not stand.
  local function seen(l)
    return math.abs(l.now - l.stranger) < STRANGER
  end

  -- leave removes the place of exactly this field, or also of an older one of its client. It
  -- returns whether it was there.
  local function leave(l, field, or_older)
    local client, n = split(field)
    local p = client and of(l, client)
    if not p or p.field ~= field and not (or_older and older(p.n, n)) then return false end
    strike(l, p)
    return true
  end

  -- ahead counts the places before number seq. Where none is missing that is a subtraction; else
  -- those near the head are counted, for whom it matters, and far behind it is an upper bound.
  local function ahead(l, seq)
    local n = seq - l.head
    if n == 0 or n > LOOKS or places(l) == l.tail - l.head + 1 then return n end
    local names = {}
    for i = l.head, seq - 1 do names[#names + 1] = 'p' .. i end
    n = 0
    for _, p in ipairs(ask('hmget', l.key, unpack(names)) or {}) do
      if p then n = n + 1 end
    end
    return n
  end

  -- put writes the place p, confirmed now, and all that has changed in the line with it: in one
  -- command, so that no place is without its number. Returns an error text or nil.
  local function put(l, p, holder)
    p.confirmed = l.now
    local met = l.stranger
    if is_stranger(holder) then
      met, l.open = l.now, 0 -- one of them has come
    end
    l.tail = math.max(l.tail, p.seq)
    local text = err(redis.pcall('hset', l.key, 'p' .. p.seq, entry(p), 'c' .. p.client, p.seq,
      'head', l.head, 'tail', l.tail, 'since', l.since, 'open', l.open, 'stranger', met))
    if text then return text end
    l.words, l.changed = l.mute and 6 or 5, false
    lives(l, math.max(met == l.now and STRANGER or 0, math.min(tonumber(p.lease), PLACE_LIFE)))
  end

  -- standing is the answer to who stands with the place p: how many are before it, and when it had
  -- better ask again. That is when the holder's time is over, if it is near the head, and soon
  -- where a message would not reach it or the holder cannot send one.
  local function standing(l, p, holder, pttl)
    local n = ahead(l, p.seq)
    if p.ears ~= '0' or n < 2 and holder ~= '' and holder == l.mute then
      local soon = BLIND * math.ceil((n + 1) / MONITOR)
      if pttl < 0 or pttl > soon then pttl = soon end
    end
    return n, pttl
  end

  -- stand takes a place at the tail for a field that was refused, or confirms the one that is
  -- there. A newer field of the same client takes over the place of an older one; an older one,
  -- which comes late, changes nothing, and neither does a lower attempt. The lease of a field
  -- stays what it was. Returns the answer to a refusal.
  local function stand(l, line, field, attempt, lease, tokens, ears, holder, pttl)
    local refused = {0, holder, pttl}
    if attempt == '0' or not line then
      if l then
        l.stays = l.stays or holder ~= '' and holder == l.mute
        save(l)
      end
      return refused
    end
    l = l or read(line)
    if not l then return refused end
    local client, n = split(field)
    local p, found = of(l, client), 0
    if p and older(n, p.n) then
      save(l)
      return refused
    end
    if p and p.field == field then
      found = 1
      if older(p.attempt, attempt) then p.attempt = attempt end
      p.ears = ears
    else
      p = {
        seq = p and p.seq or l.tail + 1, client = client,
        field = field, attempt = attempt, lease = lease, tokens = tokens, ears = ears,
      }
    end
    if put(l, p, holder) then return refused end
    local n, ms = standing(l, p, holder, pttl)
    return {0, holder, ms, n, found}
  end

  return {
    read = read, save = save, places = places, at = at, of = of, strike = strike, entry = entry, living = living,
    first = first, hears = hears, leave = leave, put = put, standing = standing, stand = stand, note_mute = note_mute, seen = seen,
    ask = ask, numsub = numsub, tell = tell, holder_of = holder_of, split = split, older = older,
    LOOKS = LOOKS, MONITOR = MONITOR, BLIND = BLIND,
  }
end

