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
}
