-- Calling: whoever frees a lock or finds it free gives it to the first in its line.

-- line_functions makes all functions about a line, see place_functions.
local function line_functions()
  local CALL_LEASE = 2000 -- so long has a called one until its renewal, or its lease if that is shorter
  local lines = place_functions()

  -- look tells the first so many living ones to ask again in so many ms. Of those after them it tells
  -- as many as are missing of so many that hear: the first ones may have been killed.
  local function look(l, many, ms)
    local any = many
    for seq = l.head, math.min(l.tail, l.head + lines.LOOKS - 1) do
      local p = lines.living(l, seq)
      if p then
        local hears = lines.hears(p, l.multi)
        if any > 0 or hears then lines.tell(p.client, '{"look":{"field":"' .. p.field .. '","in":' .. ms .. '}}') end
        if hears then many = many - 1 end
        if many == 0 then return end
        any = any - 1
      end
    end
  end

  -- call gives the lock, whose key must not exist, to the place p, and tells its client. It
  -- returns the lease and what the publication answered, nil where it could not: then the lock
  -- stays free. The message names tokens where this script may reserve them, and the places that
  -- were removed on the way because nobody confirmed them: they are for its client to count.
  local function call(key, l, fence, life, p)
    local lease, token = math.min(tonumber(p.lease), CALL_LEASE), nil
    if fence and p.tokens ~= '0' then
      token = fencing().reserve(fence, p.field, p.tokens, life)
    elseif fence then
      fencing().forget(fence)
    end
    if take(key, p.field, lease) then return nil end
    lines.strike(l, p)
    if p.passed then
      -- Who was passed over takes the number of who was called: no gap remains between the
      -- head and those who are next, which the next scripts would have to look at.
      local q = p.passed
      lines.strike(l, q)
      redis.pcall('hset', l.key, 'p' .. p.seq, lines.entry(q), 'c' .. q.client, p.seq)
      l.tail = math.max(l.tail, p.seq)
    end
    l.changed = true
    if p.ears == '2' then
      lines.note_mute(l, p.field, lease)
      look(l, 2, lines.BLIND)
    end
    return lease, lines.tell(p.client, '{"called":{"field":"' .. p.field .. '","attempt":' .. p.attempt
      .. ',"lease":' .. lease .. ',"token":"' .. (token or '') .. '"' .. (l.dead and ',"dead":' .. l.dead or '') .. '}}')
  end

  -- share tells each how many turns one must end open because of those who do not stand, nil if there
  -- are none. Who holds the lock now and then, and who listens for its release beside us, gets a turn
  -- each in a round: one of each place, and of who releases. But TURNS of ours come first: a stranger
  -- calls nobody, so others of its kind, or itself, often come between it and us. A pattern that covers the channel may as
  -- well be a monitor's, so it counts less, and only where somebody stands. A server that does not
  -- know all subscribers of a Cluster knows its own.
  local function share(l, key, receivers, own)
    local listening = receivers > 0 and lines.numsub(BEFORE .. key .. AFTER, NUMSUB) or 0
    local others, places = listening - math.max(own, 0), lines.places(l)
    if others > 0 or lines.seen(l) then return math.max((places + 1) / math.max(others, 1), TURNS) end
    if receivers > listening and places > 0 then return math.max(places, lines.MONITOR) end
  end

  -- hand_on lets the next one in after a release that receivers have heard: it calls, or leaves
  -- the lock open for window ms. It returns whom it has called ('' for
  -- nobody), after how many ms the next ones had better look again, and -2 where who was called
  -- could not be told, receivers otherwise. p is the first place, where it is known.
  local function hand_on(key, l, fence, life, receivers, window, own, p)
    l.multi = SHARDED or own < 0
    local turns = share(l, key, receivers, own)
    if turns then l.since, l.changed = l.since + 1, true end
    -- Where there is no line the last turn was longer than a count lives, or there was none: that one
    -- is open at once, or turns of a second would never be.
    if turns and (l.since >= turns or l.words == 0) then
      l.open, l.since, l.changed = l.now + window, 0, true
      look(l, 2, window)
      return '', window, receivers
    end
    local more
    if not p then p, more = lines.first(l, nil, l.multi) end
    if p then
      local lease, told = call(key, l, fence, life, p)
      if lease then
        if told < 0 then receivers = -2 end
        return p.field, lease, receivers
      end
    elseif more then
      -- All that could be looked at are dead. Whoever came last is the likeliest to be alive.
      local last = lines.at(l, l.tail)
      if last then lines.tell(last.client, '{"look":{"field":"' .. last.field .. '","in":0}}') end
      return '', 1, receivers
    end
    return '', window, receivers
  end

  lines.look, lines.call, lines.hand_on = look, call, hand_on
  return lines
end

-- is_there tells whether there is a line.
local function is_there(line)
  return line and redis.pcall('exists', line) == 1
end

