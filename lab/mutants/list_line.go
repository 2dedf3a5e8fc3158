package main

var lineMutants = []mutant{
	{
		name: "line-keeps-its-position", file: "lettuce_compat/lua/line.lua",
		mechanism: "a place that is confirmed keeps its position",
		breaks:    "who waits longest is always the last",
		old:       "    if not p.seq then\n",
		fresh:     "    if true then\n",
		tests:     []string{"TestState_P10_ToldOnce"},
	},
	{
		name: "line-look-hears", file: "lettuce_compat/lua/line.lua", pkg: "sync/internal/lock",
		mechanism: "who is told to look is somebody who hears",
		breaks:    "behind two waiters that have died a free lock is found seconds later",
		old:       "      if p and hears(p) then\n", fresh: "      if p then\n",
		tests: []string{"TestDead_AForcedRelease", "TestDead_AnOpenTurn"},
	},
	{
		name: "line-look-in-a-cluster", file: "lettuce_compat/lua/force.lua",
		mechanism: "in a cluster no node knows who hears",
		breaks:    "a forced release is found a second later",
		old:       "ARGV[3] == 'm'", fresh: "false",
		tests: []string{"TestCluster_AForcedReleaseTellsWhoListensElsewhere"},
	},
}
