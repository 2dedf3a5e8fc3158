package main

var wireMutants = []mutant{
	{
		name: "wire-resubscribed", file: "lettuce_compat/subscriber_read.go",
		mechanism: "re-try after re-subscription: every confirmation signals who watches",
		breaks:    "a release in the gap of a reconnection is slept through until the next poll",
		old:       "ch.state, ch.alone = chConfirmed, false\n\tch.signalLocked()\n", fresh: "ch.state, ch.alone = chConfirmed, false\n",
		tests: []string{"TestWire_I9_Resubscribed"}, hangs: true,
	},
	{
		name: "wire-never-retried", file: "lettuce_compat/command.go",
		mechanism: "go-redis sends each command once",
		breaks:    "a script runs twice for one call, and nobody knows",
		old:       "func (c *command) NoRetry() bool { return true }", fresh: "func (c *command) NoRetry() bool { return false }",
		tests: []string{"TestWire_I1_NeverRetried"},
	},
	{
		name: "wire-withdrawn", file: "lettuce_compat/command.go",
		mechanism: "a withdrawn command is never written",
		breaks:    "what was told to have had no effect takes effect when the server comes back",
		old:       "\treturn withdrawnArgs\n}", fresh: "\treturn c.Cmd.Args()\n}",
		tests: []string{"TestCommand_AWithdrawnOneIsNeverWritten"},
	},
	{
		name: "wire-own-capacity", file: "lettuce_compat/renew.go",
		mechanism: "renewals have capacity of their own",
		breaks:    "acquires that hang delay renewals until locks are lost",
		old:       "left := c.lanes(batch[0].Key).keep.do(", fresh: "left := c.lanes(batch[0].Key).locks.do(",
		tests: []string{"TestWire_I8_RenewalsHaveTheirOwnCapacity"},
	},
	{
		name: "wire-stranded", file: "lettuce_compat/room.go",
		mechanism: "abandoned round trips of a lane are bounded",
		breaks:    "a server that hangs takes every connection and a goroutine for each try",
		old:       " && l.total < l.limit*(1+strandedPerSlot)\n", fresh: "\n",
		tests: []string{"TestWire_I7_StrandedAreBounded"},
	},
	{
		name: "wire-slow-round-trips", file: "lettuce_compat/room.go",
		mechanism: "a round trip that is slow does not count among the few of a lane",
		breaks:    "a few connections without an answer keep every lock of the process waiting",
		old:       "l.slow+max(fewFlights", fresh: "max(fewFlights",
		tests: []string{"TestLaneIsNotHeldUpByAFewConnections"},
	},
	{
		name: "wire-queued-is-never-sent", file: "lettuce_compat/lane.go",
		mechanism: "what a caller leaves in the queue is never sent",
		breaks:    "an Acquire that was told to have had no effect takes the lock",
		old:       "\tcase callQueued:\n\t\tl.remove(k)\n", fresh: "\tcase callQueued:\n",
		tests: []string{"TestWire_I7_QueuedIsNeverSent"},
	},
	{
		name: "wire-carried-is-freed", file: "lettuce_compat/alarm.go",
		mechanism: "the alarm frees a caller that carries its call of waiting for a connection",
		breaks:    "an Unlock waits for the pool's time limit instead of its own",
		old:       "\t\t\tk.flight.endLocked() // its caller, who carries it, is only freed of waiting for a connection\n", fresh: "",
		tests: []string{"TestWire_I7_ACallerThatCarriesItselfIsFree"},
	},
	{
		name: "wire-carries-only-the-patient", file: "lettuce_compat/lane.go",
		mechanism: "a caller carries its call only on a client that minds deadlines",
		breaks:    "a Lock or Unlock waits for the client's read timeout while Redis hangs",
		old:       "return l.c.bounded && ", fresh: "return ",
		tests: []string{"TestACallerCarriesItself", "TestWire_I7_AbandonedAtOnce"},
	},
}
