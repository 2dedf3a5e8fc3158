-- The dialect of the design document. Each dialect says the same things:
--   OURS           a field of a client of ours: its client, its number
--   BEFORE, AFTER  what surrounds the key in the name of its release channel
--   TURNS          one turn in so many is left to foreign clients
-- and in document_tokens.lua
--   new_token      makes the token of a grant: returns it, or nil and the error
--   last_token     notes the last token of a unit that is given back
--   record_calls   what rehearse tries of a record: what is written leaves nothing
-- The numbers of ours have 16 digits, since they begin with the time in us; threads of foreign clients have less.
local OURS = '^([%w%._%-]+):(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)$'
local BEFORE, AFTER, TURNS = 'lock:release:', '', 2
