-- Most often nobody else is there, and the lock has no record: then a command about a Mutex is answered here, before the functions below
-- are made, which takes longer than these calls. For the arguments see state.lua, which goes on with whatever is not answered.
pcall(redis.replicate_commands) -- see prelude.lua, which comes after what is written here
local key, line, what = KEYS[1], KEYS[2], ARGV[4]
local lined, receivers -- whether there is a line; of the release message, or the error of its publication; nil: nothing was given back
if KEYS[3] then -- it has one
elseif what == '0 0 1' or what == '0 0 1t' then
  if redis.call('exists', key, line) == 0 then
    local field = ARGV[1] .. ':' .. ARGV[2]
    local set = redis.pcall('hset', key, field, '1')
    if set == 1 then
      set = redis.pcall('pexpire', key, ARGV[5])
      if set ~= 1 then redis.pcall('hdel', key, field) end -- it would stay for ever
    end
    return set
  end
elseif what == '1 0 0' and (ARGV[11] or '0') == '0' then
  lined = redis.call('exists', line) == 1
  if not lined and redis.pcall('hdel', key, ARGV[1] .. ':' .. ARGV[3]) == 1 then
    receivers = redis.pcall(PUBLISH, BEFORE .. key .. AFTER, ARGV[7])
    if receivers == 0 then return 0 end
  end
end
