package lettucecompat_test

import (
	"strings"
	"testing"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// simHead and simTail surround lua/units.lua so that the caller has the clock: the last argument is the moment in ms, the one before
// names the clients without a subscriber. Times to live end by that clock. What is published comes with the answer.
const simHead = `
local real, NOW, UNHEARD, OUT, EXP = redis, tonumber(ARGV[#ARGV]), ARGV[#ARGV - 1], {}, KEYS[1] .. ':ends'
table.remove(ARGV)
table.remove(ARGV)
for _, k in ipairs(KEYS) do
  local ends = real.call('hget', EXP, k)
  if ends and tonumber(ends) <= NOW then
    real.call('del', k)
    real.call('hdel', EXP, k)
  end
end
local function sim(call)
  return function(command, a, b, ...)
    if command == 'time' then return {string.format('%d', math.floor(NOW / 1000)), string.format('%d', NOW % 1000 * 1000)} end
    if command == 'pexpire' then
      if tonumber(b) <= 0 then return real.call('del', a) end
      if real.call('exists', a) == 0 then return 0 end
      real.call('hset', EXP, a, string.format('%d', NOW + tonumber(b)))
      return 1
    end
    if command == 'publish' then
      OUT[#OUT + 1], OUT[#OUT + 2] = a, b
      return 1
    end
    if command == 'pubsub' then return {b, string.find(UNHEARD, b .. ' ', 1, true) and 0 or 1} end
    if b == nil then return call(command, a) end
    return call(command, a, b, ...)
  end
end
local redis = {call = sim(real.call), pcall = sim(real.pcall), error_reply = real.error_reply}
local function script()
`

const simTail = `
end
local answer = script()
if type(answer) == 'table' and answer.err then return answer end
return {answer, OUT}
`

// simScript is the script under the clock of a simulation, with replacements: what is replaced, by what.
func simScript(t testing.TB, replacements ...string) string {
	t.Helper()
	source := lettucecompat.UnitsSource
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(source, replacements[i]) {
			t.Fatalf("units.lua has no %q", replacements[i])
		}
		source = strings.ReplaceAll(source, replacements[i], replacements[i+1])
	}
	return simHead + source + simTail
}
