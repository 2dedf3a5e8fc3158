package main

var metricsMutants = []mutant{
	{
		name: "debug-host", file: "metrics/debug/guard.go",
		mechanism: "the debug page checks the requested host",
		breaks:    "a foreign page in the operator's browser reads keys and call sites",
		old:       "host != \"\" && !p.allows(host)",
		fresh:     "host == anyHost",
		tests:     []string{"TestPage_I7_Hosts"},
	},
	{
		name: "debug-rest", file: "metrics/debug/pace.go",
		mechanism: "each answer is followed by a pause",
		breaks:    "a client that reloads the debug page in a loop takes a processor from the program",
		old:       "rest := time.Until(p.next); rest > 0",
		fresh:     "rest := time.Until(p.next); rest > maxRest",
		tests:     []string{"TestPage_I6_ATwentiethOfAProcessor"},
	},
	{
		name: "debug-shared-answer", file: "metrics/debug/pace.go",
		mechanism: "an answer is shared only with requests made before it was begun",
		breaks:    "the debug page shows a lock as held that was released before the request",
		old:       "p.last.q == q && p.last.began.After(asked)",
		fresh:     "p.last.q == q && !p.last.began.IsZero()",
		tests:     []string{"TestPage_I6_TheSameQuestionIsAnsweredOnce"},
	},
	{
		name: "locktest-leak-lost", file: "sync/locktest/leaks.go",
		mechanism: "a lock that the watchdog ended because its owner was gone counts as leaked",
		breaks:    "a test passes although its code never unlocks",
		old:       "list = append(list, m.srv.abandoned()...)",
		fresh:     "_ = m.srv.abandoned()",
		tests:     []string{"TestLocktest_I6_WhatTheWatchdogLetGo"},
	},
	{
		name: "locktest-leak-patience", file: "sync/locktest/leaks.go",
		mechanism: "there is time to release after the test's context has ended",
		breaks:    "a test of a leader fails although it releases its lock",
		old:       "if len(left) == 0 {",
		fresh:     "if len(left) < 99 {\n\t\t\tif len(left) > 0 {\n\t\t\t\treturn left\n\t\t\t}",
		tests:     []string{"TestLocktest_I6_WhoLetsGoAtTheEndIsNoLeak"},
	},
}
