-- KEYS: lock, fencing record   ARGV: channel, most fields to list
-- Answers {type, pttl, {field, count, ...}, counter, grantee, subscribers or -1}.
local key, fence = KEYS[1], KEYS[2]
local kind = redis.call('type', key)['ok']
local holders = {}
if kind == 'hash' and redis.call('hlen', key) <= tonumber(ARGV[2]) then
  holders = redis.call('hgetall', key)
end
local record = redis.pcall('hmget', fence, 'counter', 'grantee')
if err(record) then record = {} end
local count = redis.pcall('pubsub', 'numsub', ARGV[1])
local subscribers = -1
if not err(count) and tonumber(count[2]) then subscribers = tonumber(count[2]) end
return {kind, redis.call('pttl', key), holders, record[1] or '', record[2] or '', subscribers}
