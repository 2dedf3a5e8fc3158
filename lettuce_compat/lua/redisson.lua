-- The dialect of Redisson; document.lua says what a dialect consists of. Our client ids are UUIDs of version 8,
-- Java's random ones of version 4.
local OURS = '^(%x+%-%x+%-8%x+%-%x+%-%x+):(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)$'
local BEFORE, AFTER, TURNS = 'redisson_lock__channel:{', '}', 3
if string.find(KEYS[1], '{', 1, true) then BEFORE, AFTER = 'redisson_lock__channel:', '' end
