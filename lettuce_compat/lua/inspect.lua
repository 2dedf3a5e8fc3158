-- KEYS: lock, line or lock, fencing record   ARGV: channel, most fields to list
-- Answers {type, pttl, {field, count, ...}, counter, subscribers or -1}.
local key, fence = KEYS[1], KEYS[3]
local kind = redis.call('type', key)['ok']
local holders = {}
if kind == 'hash' and redis.call('hlen', key) <= tonumber(ARGV[2]) then
  holders = redis.call('hgetall', key)
end
local counter = redis.pcall('hget', fence, 'counter')
if err(counter) then counter = false end
local count = redis.pcall('pubsub', 'numsub', ARGV[1])
local subscribers = -1
if not err(count) and tonumber(count[2]) then subscribers = tonumber(count[2]) end
return {kind, redis.call('pttl', key), holders, counter or '', subscribers}
