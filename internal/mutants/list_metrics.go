package main

var metricsMutants = []mutant{
	{
		name: "debug-host", file: "metrics/debug/guard.go",
		mechanism: "the debug page looks at the name that it is asked for",
		breaks:    "a foreign page in the operator's browser reads keys and call sites",
		old:       "host != \"\" && !p.allows(host)",
		fresh:     "host == anyHost",
		tests:     []string{"TestPage_I7_Hosts"},
	},
	{
		name: "debug-rest", file: "metrics/debug/pace.go",
		mechanism: "an answer is followed by a rest, whoever asks",
		breaks:    "somebody who reloads the debug page in a loop takes a processor from the program",
		old:       "rest := time.Until(p.next); rest > 0",
		fresh:     "rest := time.Until(p.next); rest > maxRest",
		tests:     []string{"TestPage_I6_ATwentiethOfAProcessor"},
	},
	{
		name: "debug-shared-answer", file: "metrics/debug/pace.go",
		mechanism: "an answer is shared only with who asked before it was begun",
		breaks:    "the debug page shows a lock as held that was released before the question",
		old:       "p.last.q == q && p.last.began.After(asked)",
		fresh:     "p.last.q == q && !p.last.began.IsZero()",
		tests:     []string{"TestPage_I6_TheSameQuestionIsAnsweredOnce"},
	},
}
