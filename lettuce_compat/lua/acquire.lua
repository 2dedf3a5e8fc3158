-- KEYS: lock, line (the lock again: without one) [, fencing record]
-- ARGV: field, lease ms [, attempt (0: it does not stand; strings: nor that, and a string is another's lock), ears, 1 where NUMSUB knows nothing
-- [, repeat 0|1, tokens, a dropped field with its last token and what it had reserved ('', 0, 0: none),
-- life of the record in ms, dropped fields ...]]
-- Answers 1 granted, nothing else to tell; {1, first token, found 0|1, the dropped field that was there or ''}
-- granted; {0, holder, pttl} refused, {0, holder, pttl, places ahead, found 0|1} refused and standing, either
-- with the dropped field after it, if one was there.
local key, line, fence = KEYS[1], KEYS[2], KEYS[3]
local field, lease, attempt, again = ARGV[1], ARGV[2], ARGV[3] or '0', ARGV[6]
if line == key then line = nil end
local strings = attempt == 'strings'
if strings then attempt = '0' end

local found, dropped, kind = 0, '', 'none'
local lines, l -- the functions about the line, and what it says, where there is one
local refuse   -- answers that holder has the lock, and stands where that is asked for
-- Most often there is neither lock nor line, and nothing more to look at.
if redis.pcall('exists', key, line or key) ~= 0 then
  kind = redis.call('type', key)['ok']
  if strings and kind == 'string' then return {0, '', redis.call('pttl', key)} end
  if kind ~= 'none' and kind ~= 'hash' then
    return redis.error_reply('WRONGTYPE the key holds a value of type ' .. kind .. ', not a lock')
  end
  if is_there(line) then
    lines = line_functions()
    l = lines.read(line)
    if attempt == '0' then -- one that stands takes over the place of a dropped field
      for i = 12, #ARGV do
        if l then lines.leave(l, ARGV[i]) end
      end
    end
  end
  refuse = function(holder, pttl)
    local answer = {0, holder, pttl}
    if attempt ~= '0' or l then
      lines = lines or line_functions()
      answer = lines.stand(l, line, field, attempt, lease, ARGV[7] or '0', ARGV[4] or '0', holder, pttl)
    end
    if dropped ~= '' then answer[#answer + 1] = dropped end
    return answer
  end
end
if kind == 'hash' then
  for i = 12, #ARGV do
    if redis.call('hdel', key, ARGV[i]) == 1 then dropped = ARGV[i] end
  end
  local fields = redis.call('hlen', key)
  if fields > 0 then
    if redis.call('hexists', key, field) == 0 then
      -- A large hash is somebody's data, not a lock: its names are not fetched.
      local holder = ''
      if fields <= 64 then holder = redis.call('hkeys', key)[1] end
      return refuse(holder, redis.call('pttl', key))
    end
    found = 1
    if again ~= '1' then
      return redis.error_reply('ANTEROOM the field is there before its first attempt: two clients share one client id')
    end
  end
end
if l and found == 0 then
  -- The lock is free, and somebody may stand for it: then it is theirs.
  if l.open > l.now then return refuse('', l.open - l.now) end
  local client = lines.split(field)
  local p, more = lines.first(l, client, ARGV[5] == '1')
  if p and p.client ~= client then
    local called = lines.call(key, l, fence, ARGV[11], p)
    if called then return refuse(p.field, called) end
  elseif more then
    return refuse('', 1) -- all that could be looked at were dead: the next attempt looks further
  end
end

-- Without the right to PEXPIRE a field would stay for ever, so that right is asked for
-- before anything is written, where the server can tell (7.0 and newer).
if redis.acl_check_cmd and not redis.acl_check_cmd('pexpire', key, lease) then
  return redis.error_reply("NOPERM this user has no permissions to run the 'pexpire' command on the lock")
end
local first_token, text = '0', nil
if fence then
  local tokens = fencing()
  if ARGV[8] ~= '' then tokens.settle(fence, ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[8] == dropped or ARGV[8] == field and found == 1) end
  first_token, text = tokens.reserve(fence, field, ARGV[7], ARGV[11])
  if text then return redis.error_reply(text) end
end
text = take(key, field, lease, found == 1)
if text then return redis.error_reply(text) end
if ARGV[4] == '2' then
  lines = lines or line_functions()
  l = l or lines.read(line)
end
if l then
  lines.leave(l, field, true)
  if ARGV[4] == '2' then lines.note_mute(l, field, lease) end
  lines.save(l)
end
if not again then return 1 end
return {1, first_token, found, dropped}
