-- The commands for release channels that are the whole server's.
local PUBLISH, SUBSCRIBE, NUMSUB = 'publish', 'subscribe', 'numsub'
