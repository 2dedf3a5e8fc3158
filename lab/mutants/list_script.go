package main

// In the scripts an edit that only takes a line away often leaves a name unused, which Lua
// does not mind.

var scriptMutants = []mutant{
	{
		name: "script-publish-protected", file: "lettuce_compat/lua/prelude.lua",
		mechanism: "a refused publication does not undo the release",
		breaks:    "a user without channels releases nothing, or hears of a failure that was none",
		old:       "local answer = redis.pcall(command or 'publish', channel, message)", fresh: "local answer = redis.call(command or 'publish', channel, message)",
		tests: []string{"TestState_P14_WhoMayNotPublish"},
	},
}
