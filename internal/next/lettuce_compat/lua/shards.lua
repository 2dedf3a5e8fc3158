-- As channels.lua, where a release channel belongs to the shard of its lock.
local PUBLISH, SUBSCRIBE, NUMSUB = 'spublish', 'ssubscribe', 'shardnumsub'
