-- The command of a client about a Mutex: what it has, keeps and wants.
-- KEYS: lock, line (the lock again: without line and record) [, fencing record]
-- ARGV: client, number, since, 'have keep want' (have: 0 | p a place | 1; behind it t: a try, f: takes a free lock ahead of the line), call lease,
-- 'lease life how word' (the lease of what is kept; life of a place; how, letters after a -: m NUMSUB knows nothing,
-- s strings are locks; secret word of the place) [, release message, 'own window' (own subscriptions of the release
-- channel, -1: a server does not count all; ms that the lock is left to foreign clients) [, life of the record
-- [, last token, ms that a mark stays (0: none, -1: as long as the unit would) [, its field]]]]
-- Answers 1 has it for the call lease, nobody else waits; 0 has nothing, or which message was refused: -1 of the
-- release, -2 to another client; {'void'} | {'lost'} | {'gone'};
-- {'has', ttl, 1 another client waits | 0, token or '', 0|-1|-2, number of its field} |
-- {'waits', ttl, places ahead, holder, 0|-1|-2 [, its note]} | {'refused', ttl, 0, holder, 0|-1|-2 [, its note]}.
-- alone.lua comes before it.
local fence, client, n = KEYS[3], ARGV[1], ARGV[2]

-- grant makes a field the holder. Returns the token, '' without a record; nil and the error where it cannot.
local function grant(to, lease)
  local token, text = '', nil
  if fence then token, text = new_token(fence, ARGV[9]) end
  text = text or take(key, to, lease)
  return not text and token or nil, text
end

-- Most often nobody else is there, also with a record.
if fence and (what == '0 0 1' or what == '0 0 1t') then
  if redis.call('exists', key, line) == 0 then
    local token, text = grant(client .. ':' .. n, ARGV[5])
    return text and redis.error_reply(text) or {'has', tonumber(ARGV[5]), 0, token, 0, n}
  end
elseif fence and what == '1 0 0' and (ARGV[11] or '0') == '0' then
  lined = redis.call('exists', line) == 1
  if not lined and remove(key, client .. ':' .. ARGV[3]) == 1 then
    last_token(fence, ARGV[10] or '0', ARGV[9])
    receivers = redis.pcall(PUBLISH, BEFORE .. key .. AFTER, ARGV[7])
  end
end
if err(receivers) then receivers = publish(BEFORE .. key .. AFTER, ARGV[7], PUBLISH) end -- Redis may not know SPUBLISH
if receivers and receivers <= 0 then return receivers end

local have, keep, want, try, first = string.match(what, '^(%w) (%d) (%d)([tf]?)$')
local lease, life, how, word = string.match(ARGV[6], '^(%d+) (%d+) (%S+) (%S+)$')
local own, window = string.match(ARGV[8] or '', '^(%-?%d+) (%d+)$')
local since, K, message, last, mark = ARGV[3], ARGV[5], ARGV[7] or '', ARGV[10] or '0', tonumber(ARGV[11] or '0')
local number, multi, strings = tonumber(n), string.find(how, 'm', 1, true), string.find(how, 's', 1, true)
own, window, first, try = tonumber(own or '-1'), tonumber(window or '1'), try == 'f', try == 't'
local l = line ~= key and (lined or want == '1' or redis.call('exists', line) == 1) and line_of(line, client, multi)

-- refusal says which message was refused, in numbers as above.
local function refusal()
  return l and l.refusal < 0 and l.refusal or receivers == -1 and -1 or 0
end

-- concluded returns an answer about what is not there: only a master may say so.
local function concluded(answer)
  local text = prove(key)
  return text and redis.error_reply(text) or answer
end

-- give_back ends a hold. Returns the receivers of its message, or nil, and an error if there is one. An acquire has no message:
-- it takes the lock again immediately.
local function give_back(field)
  local removed, text = remove(key, field)
  if removed ~= 1 then return nil, text end
  if fence then last_token(fence, last, ARGV[9]) end
  return message ~= '' and publish(BEFORE .. key .. AFTER, message, PUBLISH) or 0
end

-- 1, 2. What the client has.
if l and l.own and tonumber(l.own.n) >= number then return {'void'} end
local kind, mine, value, holder, note, text -- of the lock; the field of this client that it keeps, and its value; any field, and its note
if not receivers and have == '1' and keep == '0' and mark == 0 then -- most often that is its field
  receivers, text = give_back(client .. ':' .. since)
  if text then return redis.error_reply(text) end
end
if not receivers then
  local fields, m
  kind, fields = lock_of(key, strings)
  if not kind and (have == 'p' or want == '1' and have == '0' or not string.find(fields, 'WRONGTYPE', 1, true)) then
    return redis.error_reply(fields)
  end
  local unit = client .. ':' .. since
  if not kind then kind, fields = 'other', ask('hexists', key, unit) == 1 and {unit, '1'} or {} end -- beside an application's
  for i = 1, #fields, 2 do
    local c, digits = string.match(fields[i], OURS)
    if c == client then mine, m, value = fields[i], tonumber(digits), fields[i + 1] end
  end
  holder, note = fields[1] or '', note_of(fields[2])
  if m and m >= number then return {'void'} end
  if m and m < tonumber(since) then mine = nil end -- of a late command: it refuses as anybody's
  -- Who says that it has the unit, or leaves a mark of it, finds the unit or the mark.
  if not mine and (have == '1' or mark ~= 0) and (mark == 0 or ask('hexists', key, ARGV[12]) ~= 1) then return concluded({'lost'}) end
  if have == 'p' and not mine and not (l and l.own and tonumber(l.own.n) >= tonumber(since)) then return concluded({'gone'}) end
  if have == '0' and want == '1' and not try and kind ~= 'none' and not l.own and redis.acl_check_cmd
    and not redis.acl_check_cmd('publish', 'anteroom:client:' .. client, '') then -- a client in line will have to call others
    return redis.error_reply("NOPERM this user has no permissions to publish on clients' channels (anteroom:client:*)")
  end
end

-- 3. What it does not keep is given back.
if mine and keep == '0' then
  if mark < 0 then mark = ask('pttl', key) or 0 end
  if mark > 0 then -- it keeps the key taken; that the field can go is made sure before it is set
    local noted = note_of(value) and not string.find(ARGV[12], ':kept$') -- a ticket is of the hold as before
    text = prove(key) or take(key, ARGV[12], mark, noted and value)
    if text then return redis.error_reply(text) end
  end
  receivers, text = give_back(mine)
  if text then return redis.error_reply(text) end
end
if receivers then
  mine = nil
  if not l and line ~= key and receivers > math.max(own, 0) then local made, it = pcall(line_of, line, client, multi) l = made and it end
  if not l and want == '0' then return refusal() end
  kind, note = redis.pcall('exists', key) == 0 and 'none' or 'hash', nil
  holder = kind == 'hash' and (ask('hkeys', key) or {})[1] or ''
end

-- 4. What it keeps. From here on only who had nothing, and gets nothing, is answered with an error.
local token
if mine and have == '1' then text = raise(key, lease) elseif mine or (want == '0' or try) and not receivers then text = prove(key) end
if not text and mine and fence and have == 'p' then token, text = new_token(fence, ARGV[9]) end -- the caller may not fence
if text then return redis.error_reply(text) end
local waits, near = want == '1' and not mine, false -- near: the place that leaves was one of the first two
if l and l.own and waits and not try then
  l.own.n, l.own.lease, l.own.alive, l.own.word = n, K, l.now + life, word
elseif l and l.own then
  near = not mine and l.ahead(l.own.seq) < 2
  l.strike(l.own)
end

-- 5. The line: a free lock is for the first in it, unless this turn is left to foreign clients. Then it is for who asks.
local free = kind == 'none'
if l and free and not first and l.open <= l.now and not (receivers and message ~= ''
  and l.leaves_open(strings or others_heard(BEFORE .. key .. AFTER, receivers, own), window)) then
  l.serve(1, function() return true end, function(p, contended)
    local given
    given, text = grant(p.client .. ':' .. p.n, p.lease)
    if text then return nil end
    free, holder, note = false, p.client .. ':' .. p.n, nil
    l.contended, l.changed = contended, true
    return '1 ' .. (fence and given or '0')
  end, waits and not try and not l.own)
end
if l and l.got then
  token = fence and string.sub(l.got, 3) or ''
elseif waits and free and not text and (first or l.open <= l.now and l.places == 0) then
  token, text = grant(client .. ':' .. n, K)
  if l.own and not text then l.strike(l.own) end
  l.contended, l.changed = l.places > 0 and '1' or '0', true
end
if near and (not free or l.open > l.now) then l.hint_retry(2, math.max(l.open - l.now, 0)) end
if l and receivers and mark > 0 then l.hint_retry(2, mark + 1) end -- at its last ms it is still there

-- 6. The answer.
if waits and not token then
  if text and not receivers then l.save() return redis.error_reply(text) end
  local ttl = free and math.max(l.open - l.now, 1) or ask('pttl', key) or 0
  if not try then
    local foreign = kind == 'string' or holder ~= '' and not string.find(string.gsub(holder, ':kept$', ''), OURS)
    local p = l.own or {client = client, n = n, lease = K, alive = l.now + life, word = word, more = ''}
    local ahead, failed = l.keep_place(p, holder, foreign)
    if ahead then return {'waits', ttl, ahead, holder, refusal(), note} end
    if not receivers then return redis.error_reply(failed) end
  end
  l.save()
  return {'refused', ttl, 0, holder, refusal(), note}
end
if l then l.save() end
if want == '0' then return refusal() end
return {'has', mine and ask('pttl', key) or tonumber(K), l and l.places > 0 and 1 or 0, token or '', refusal(), mine and string.match(mine, '%d+$') or n}
