package main

var scriptGuardMutants = []mutant{
	{
		name: "script-renew-own-field", file: "lettuce_compat/lua/renew.lua",
		mechanism: "renew: only the holder's field is renewed",
		breaks:    "a late renewal keeps the next holder's lock alive, and says 'renewed' to who has lost it",
		old:       "if here == 1 then return raise(key, lease) or 1 end", fresh: "if here then return raise(key, lease) or 1 end",
		tests: []string{"TestRenewAndStatus"},
	},
	{
		name: "script-renew-one-bad-key", file: "lettuce_compat/lua/renew.lua",
		mechanism: "renew: one bad key fails no other",
		breaks:    "a foreign type at one name loses 255 other locks",
		old:       "local here = redis.pcall('hexists', key, field)", fresh: "local here = redis.call('hexists', key, field)",
		tests: []string{"TestRenewAndStatus"},
	},
	{
		name: "script-status-one-bad-key", file: "lettuce_compat/lua/status.lua",
		mechanism: "status: one bad key fails no other",
		breaks:    "the watchdog is blind for all locks because of one",
		old:       "local count = redis.pcall('hget', key, field)", fresh: "local count = redis.call('hget', key, field)",
		tests: []string{"TestRenewAndStatus"},
	},
}
