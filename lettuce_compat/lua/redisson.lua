-- The dialect of Redisson; document.lua says what a dialect consists of. Our client ids are UUIDs of
-- version 8, Java's random ones of version 4.
local OURS = '^(%x+%-%x+%-8%x+%-%x+%-%x+):(%d+)$'
local RECORD, TURNS = 'string', 3
local BEFORE, AFTER = 'redisson_lock__channel:{', '}'
if string.find(KEYS[1], '{', 1, true) then BEFORE, AFTER = 'redisson_lock__channel:', '' end

-- The tokens are those of RFencedLock: a bare counter that lives for ever. It knows no grantee, so
-- nothing can be taken back, and it may run ahead of no clock.
local function fencing()
  local function outlast() end

  local function reserve(fence, _, tokens)
    local last = redis.pcall('incrby', fence, tokens)
    if err(last) then return nil, err(last) end
    return string.format('%.0f', last - tonumber(tokens) + 1)
  end

  -- settle gives tokens back whose field was there until now: while it was nobody else could reserve
  -- any. A repeat finds no field, and might meet a counter that others have brought to the same value.
  local function settle(fence, _, last, reserved, _, was_there)
    if was_there and reserved ~= '0' and redis.pcall('get', fence) == reserved then
      redis.pcall('incrby', fence, string.format('%.0f', tonumber(last) - tonumber(reserved)))
    end
  end

  local function forget() end

  local function newest(fence)
    return redis.pcall('get', fence)
  end

  return {outlast = outlast, reserve = reserve, settle = settle, forget = forget, newest = newest}
end
