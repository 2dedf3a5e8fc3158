-- Shared by all scripts. Every call that may fail after something was written is
-- a protected one, so that an error answer always means: no holder was set, changed or
-- removed, but for burnt fields of the caller's own that an acquire names. In a fencing
-- record tokens may have been reserved in vain, and the grantee may have been changed or
-- forgotten: by an acquire, and by a forced release before it refuses to delete a hash that
-- is no lock. Either only means that a hold that vanishes is not taken back.

-- Servers before 5 replicate a script by its text unless told so first, and then forbid
-- writes after TIME, PTTL or PUBSUB.
if redis.replicate_commands then redis.replicate_commands() end

-- err returns the text of an error answer, or nil.
local function err(answer)
  if type(answer) == 'table' then return answer.err end
end

local function is_wrong_type(text)
  return string.find(text, 'WRONGTYPE', 1, true) ~= nil
end

-- remove deletes one field. HDEL is refused by a read-only replica even where it
-- has nothing to do, so an answer without error also proves that a master gave it.
-- A key of another type does not hold the field. Returns the count, or nil and the error.
local function remove(key, field)
  local answer = redis.pcall('hdel', key, field)
  local text = err(answer)
  if not text then return answer end
  if is_wrong_type(text) then return 0 end
  return nil, text
end

-- raise moves the time to live up to lease, never down. Where there is nothing to
-- raise, deleting a field that nobody has proves the master. Returns an error text or nil.
local function raise(key, lease)
  local ttl = redis.pcall('pttl', key)
  if err(ttl) then return err(ttl) end
  if ttl < tonumber(lease) then return err(redis.pcall('pexpire', key, lease)) end
  local _, text = remove(key, ':none')
  return text
end

-- hold makes field the holder. A holder without time to live would stay for ever,
-- so it is taken back where the time to live cannot be set. again: the field may be
-- there, and so may a time to live that must not be shortened.
local function hold(key, field, lease, again)
  local text = err(redis.pcall('hset', key, field, '1'))
  if text then return text end
  if again then
    text = raise(key, lease)
  else
    text = err(redis.pcall('pexpire', key, lease))
  end
  if text then redis.pcall('hdel', key, field) end
  return text
end

-- publish tells the waiters. A refusal must not undo the release: -1 says it.
local function publish(channel, message)
  local answer = redis.pcall('publish', channel, message)
  if err(answer) then return -1 end
  return answer
end

-- outlast sees to it that the fencing record lives for ms more, or longer where it does
-- already, or for least if that is said and it does. A record without an end, which older clients have left, gets one. That this may
-- be refused costs memory only.
local function outlast(fence, ms, least)
  local left = redis.pcall('pttl', fence)
  if not err(left) and left < (least or ms) then redis.pcall('pexpire', fence, string.format('%.0f', ms)) end
end

-- reserve takes tokens from the fencing record, above everything given out before
-- and above the server's clock. The record lives for ms after the moment at which the
-- clock has reached the last of them, so that without it the clock alone makes larger
-- ones, also where it was set back before. Lua prints large numbers as 1.7e+15 by itself.
-- Returns the first token, or nil and the error.
local function reserve(fence, field, tokens, ms)
  local time = redis.call('time')
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local counter = redis.pcall('hget', fence, 'counter')
  if err(counter) then return nil, err(counter) end
  local first = math.max(tonumber(counter or '0') or 0, now) + 1
  local last = first + tonumber(tokens) - 1
  local text = err(redis.pcall('hset', fence, 'counter', string.format('%.0f', last), 'grantee', field))
  if text then return nil, text end
  outlast(fence, tonumber(ms) + (last - now) / 1000)
  return string.format('%.0f', first)
end

-- settle closes the fencing record of a grant that ends: unused tokens go back if
-- nobody reserved after us, and the grantee is forgotten, so that a late renewal
-- cannot take a released lock again. The record lives for ms from then on.
local function settle(fence, field, last, reserved, ms)
  if not fence then return end
  local record = redis.pcall('hmget', fence, 'grantee', 'counter')
  if err(record) or record[1] ~= field then return end
  if reserved ~= '0' and record[2] == reserved then
    redis.pcall('hset', fence, 'counter', last)
  end
  redis.pcall('hdel', fence, 'grantee')
  outlast(fence, tonumber(ms))
end


-- The line is the queue in Redis of the processes that wait for a lock: a hash used as an
-- array. Its fields: head and tail, the numbers of the first place and the last; p<number>, a
-- place; c<client>, the number of that client's place; open, until when the lock is left to
-- clients without a place; since, how often one was called since it was; stranger, when such
-- a client was seen to hold the lock. Times are the server's, in ms.
--
-- A place is "<field> <attempt> <lease> <tokens> <deaf> <confirmed>": what is granted when it
-- is called, the number of the attempt that has confirmed it last, and when. What goes wrong
-- with a line never fails a script: at worst somebody has to ask again.
local place_life, call_lease, most_looked_at, stranger_life = 30000, 2000, 64, 10000

local function server_ms()
  local time = redis.call('time')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- open_line returns the line, or nil where there is none to use: it is not named, which
-- the lock's own key in its place says, or the user may not read it, or it is something else.
-- mode says what the client knows: m, its keys are on several servers, so that this one does
-- not know all subscribers; d, it hears no calls at the moment; r, see acquire.
local function open_line(name, mode)
  if name == KEYS[1] then return nil end
  local row = redis.pcall('hmget', name, 'head', 'tail', 'open', 'since', 'stranger')
  if err(row) then return nil end
  return {
    key = name, mode = mode, head = tonumber(row[1]) or 1, tail = tonumber(row[2]) or 0,
    open = tonumber(row[3]), since = tonumber(row[4]) or 0, stranger = tonumber(row[5]),
  }
end

local function says(line, letter) return string.find(line.mode, letter, 1, true) ~= nil end

-- moment is the server's time, asked for once.
local function moment(line)
  line.now = line.now or server_ms()
  return line.now
end

-- rest is for how long the lock is still left to clients without a place; 0: it is not.
local function rest(line)
  if not line.open then return 0 end
  return math.max(line.open - moment(line), 0)
end

-- save writes down what was moved. A line that says nothing any more goes.
local function save(line)
  if not line or not line.moved then return end
  if line.head > line.tail and rest(line) == 0 and not line.stranger then
    redis.pcall('del', line.key)
  else
    redis.pcall('hset', line.key, 'head', line.head, 'tail', line.tail)
  end
end

-- last_until sees to it that the line lives for ms more.
local function last_until(line, ms)
  local left = redis.pcall('pttl', line.key)
  if err(left) then return err(left) end
  if left < ms then return err(redis.pcall('pexpire', line.key, ms)) end
end

local function split(field)
  local client, n = string.match(field, '^([%w%._%-]+):(%d+)$')
  return client, tonumber(n)
end

-- calls reports whether the client that holds the lock under this name calls the next when
-- it releases: those that know the line number their fields from the clock.
local function calls(holder)
  local _, n = split(holder)
  return n ~= nil and n >= 1e15
end

local function read_place(line, number)
  local text = redis.pcall('hget', line.key, 'p' .. number)
  if err(text) or not text then return nil end
  local field, attempt, lease, tokens, deaf, confirmed = string.match(text, '^(%S+) (%d+) (%d+) (%d+) ([01]) (%d+)$')
  if not field then return nil end
  local client, n = split(field)
  return {
    number = number, field = field, client = client, n = n, attempt = tonumber(attempt), lease = tonumber(lease),
    tokens = tonumber(tokens), deaf = deaf == '1', confirmed = tonumber(confirmed),
  }
end

local function place_of(line, client)
  if line.head > line.tail then return nil end
  local number = redis.pcall('hget', line.key, 'c' .. client)
  if err(number) or not number then return nil end
  return read_place(line, tonumber(number))
end

-- write_place puts a place where it says, as confirmed now. The client can say what it hears.
-- Returns an error text or nil.
local function write_place(line, p)
  local text = string.format('%s %.0f %.0f %.0f %s %.0f', p.field, p.attempt, p.lease, p.tokens,
    says(line, 'd') and '1' or '0', moment(line))
  local refused = err(redis.pcall('hset', line.key, 'head', line.head, 'tail', line.tail, 'p' .. p.number, text, 'c' .. p.client, p.number))
  if refused then return refused end
  refused = last_until(line, math.min(p.lease, place_life))
  -- A line without time to live would stay for ever.
  if refused then redis.pcall('del', line.key) end
  return refused
end

local function drop_place(line, p)
  redis.pcall('hdel', line.key, 'p' .. p.number, 'c' .. p.client)
  if p.number == line.head then line.head = line.head + 1 end
  line.moved = true
end

-- leave removes the place of exactly this field; of an older one of its client too, if older
-- is said. Returns whether it was there.
local function leave(line, field, older)
  if not line then return false end
  local client, n = split(field)
  local p = client and place_of(line, client)
  if not p or not (p.field == field or older and p.n < n) then return false end
  drop_place(line, p)
  return p.field == field
end

-- stand gives the field's client a place at the end of the line, or confirms the one that it
-- has, where a newer field replaces an older one. Returns how many are before it and 1 where
-- exactly this field had the place already, or nil where it has none.
local function stand(line, field, attempt, lease, tokens)
  local client, n = split(field)
  local p, found = place_of(line, client), 0
  if p and p.n > n then return nil end
  if not p then
    line.tail = line.tail + 1
    p = {number = line.tail, client = client}
  end
  if p.field == field then
    found, attempt = 1, math.max(p.attempt, tonumber(attempt))
  else
    p.field, p.n, p.lease, p.tokens = field, n, tonumber(lease), tonumber(tokens)
  end
  p.attempt = tonumber(attempt)
  if write_place(line, p) then return nil end
  return p.number - line.head, found
end

-- reachable reports whether somebody listens to the channel of the place's client, as far as
-- this server knows. PUBLISH would count those that listen to a pattern too.
local function reachable(line, p)
  if p.deaf or says(line, 'm') then return true end
  local count = redis.pcall('pubsub', 'numsub', 'anteroom:client:' .. p.client)
  return err(count) or tonumber(count[2]) ~= 0
end

-- first_live returns the first place whose client has confirmed it within its life, or is
-- client itself, and is reachable; if nobody is, the first that is live. Those that are not
-- lose their places; who is only unreachable keeps it. No more than some places are looked at,
-- so that no crowd of dead ones blocks the server for long.
local function first_live(line, client)
  local unreachable
  for number = line.head, math.min(line.tail, line.head + most_looked_at - 1) do
    local p = read_place(line, number)
    if not p then
      if number == line.head then line.head, line.moved = number + 1, true end
    elseif p.client ~= client and p.confirmed + math.min(p.lease, place_life) < moment(line) then
      drop_place(line, p)
    elseif p.client == client or reachable(line, p) then
      return p
    else
      unreachable = unreachable or p
    end
  end
  return unreachable
end

-- tell publishes on the own channel of a place's client.
local function tell(line, p, message)
  if publish('anteroom:client:' .. p.client, message) < 0 then line.refused = true end
end

-- call grants the lock, whose key does not exist, to a place, for as long as its client needs
-- to say that it is there. Tokens are reserved where the record is named; who gets none asks
-- for them. Returns whether it could.
local function call(key, line, p, fence, life)
  local lease = math.min(p.lease, call_lease)
  if hold(key, p.field, lease) then return false end
  local token = ''
  if fence and p.tokens > 0 then token = reserve(fence, p.field, p.tokens, life) or '' end
  drop_place(line, p)
  tell(line, p, string.format('{"called":{"field":"%s","attempt":%.0f,"lease":%.0f,"token":"%s"}}', p.field, p.attempt, lease, token))
  return true
end

-- look tells the first two, who look after the lock, that it may be free in ms.
local function look(line, ms)
  local told = 0
  for number = line.head, math.min(line.tail, line.head + most_looked_at - 1) do
    local p = read_place(line, number)
    if p then
      tell(line, p, string.format('{"look":{"field":"%s","in":%.0f}}', p.field, ms))
      told = told + 1
      if told == 2 then return end
    end
  end
end

-- strangers reports whether clients without a place want the lock: one has held it lately, or
-- listens to the releases. receivers is how many heard of the last one, with those that listen
-- to a pattern; own, how many of them are the caller's own connections.
local function strangers(key, line, receivers, own)
  if line.stranger and moment(line) - line.stranger < stranger_life then return true end
  line.stranger = nil
  if receivers <= 0 then return false end
  local count = redis.pcall('pubsub', 'numsub', 'lock:release:' .. key)
  return not err(count) and (tonumber(count[2]) or 0) > own
end

-- pass_on calls the first in line where the key is free, and returns the field that it has
-- called. Where strangers want the lock it is left to them for open ms instead, once for each
-- round of the line: they count as one more in it.
local function pass_on(key, line, fence, life, receivers, open)
  if not line or line.head > line.tail and receivers == 0 then return nil end
  if redis.pcall('exists', key) ~= 0 or rest(line) > 0 then return nil end
  if strangers(key, line, receivers, 0) then
    if line.since > line.tail - line.head then
      line.open, line.moved = moment(line) + open, true
      redis.pcall('hset', line.key, 'head', line.head, 'tail', line.tail, 'open', line.open, 'since', 0)
      last_until(line, open)
      look(line, open)
      return nil
    end
    redis.pcall('hset', line.key, 'since', line.since + 1)
  end
  local p = first_live(line, '')
  if p and call(key, line, p, fence, life) then return p.field end
end
