package dashboards

// redis is for the question whether Redis serves the locks, and whether the watchdog
// that watches over them is itself well.
func redis() Dashboard {
	var g grid
	healthOf := func(check string) string {
		sel := `check="` + check + `"`
		return sum(rate("watchdog_checks_total", sel, `outcome="healthy"`)) + " / " + sum(rate("watchdog_checks_total", sel, `outcome!="unknown"`))
	}
	g.row(4,
		stat("Managers", "Managers that export metrics.", count, plain, sum(current("managers"))),
		stat("Subscriptions up", "Subscription connections. Each Manager has one, once it has needed it.", count, plain, sum(current("subscriptions_up"))),
		stat("Commands failed", "Share of the commands to Redis that got no usable answer.", share, warnFrom(0.001, 0.05),
			sum(rate("redis_commands_total", `outcome=~"failed|unknown"`))+" / "+sum(rate("redis_commands_total"))),
		stat("Renewals healthy", "Share of the watchdog's looks at renewals that found nothing.", share, goodFrom(0.9, 0.99), healthOf("renewal")),
		stat("Lock states healthy", "Share of the watchdog's questions to Redis about held locks that found what was expected.", share, goodFrom(0.9, 0.99), healthOf("lock_status")),
		stat("Connection healthy", "Share of the watchdog's checks of the connection that found nothing.", share, goodFrom(0.9, 0.99), healthOf("connection")),
	)
	byCommand := []string{"command"}
	g.row(8,
		stacked("Commands to Redis", "Commands per second. Many renewals are one command.", perSecond,
			ask{sum(rate("redis_commands_total"), "command"), "{{command}}"}).beside(),
		stacked("Commands that failed", "failed: not executed, or an error. unknown: the answer was lost, it may have been executed.", perSecond,
			ask{sum(rate("redis_commands_total", `outcome=~"failed|unknown"`), "command", "outcome"), "{{command}}: {{outcome}}"}).beside(),
	)
	g.row(8,
		lines("Time of commands, 99 %", "Until the caller was free, those included that were given up at their limit.", seconds,
			ask{quantile(0.99, "redis_command_seconds", byCommand), "{{command}}"}).beside(),
		lines("Round trip", "Pings and probes of the watchdog: the way to Redis and back, without work. A probe is a message through the subscription.", seconds,
			ask{quantile(0.5, "redis_command_seconds", byCommand, `command=~"ping|probe"`), "{{command}} 50 %"},
			ask{quantile(0.99, "redis_command_seconds", byCommand, `command=~"ping|probe"`), "{{command}} 99 %"}),
	)
	g.row(8,
		lines("Managers and subscriptions", "While a Manager's subscription is down its waiters find out by polling.", count,
			ask{sum(current("managers")), "Managers"}, ask{sum(current("subscriptions_up")), "subscriptions up"}),
		bars("Connection events", "What Managers reported about Redis.", count,
			ask{sum(increase("events_total", interval, `kind=~"subscription_down|subscription_up|unavailable|available"`), "kind"), "{{kind}}"}),
	)
	g.row(8,
		lines("Checks of the watchdog", "Checks per second. holder and lock_status need held locks, recovery only follows an action.", perSecond,
			ask{sum(rate("watchdog_checks_total"), "check"), "{{check}}"}),
		lines("Checks that found something", "unhealthy checks per second. Checks that are unknown accuse nobody: Redis or the machine did not answer.", perSecond,
			ask{sum(rate("watchdog_checks_total", `outcome!="healthy"`), "check", "outcome"), "{{check}}: {{outcome}}"}).beside(),
	)
	g.row(8,
		lines("Since the last check", "In the process where it is longest. connection is checked always, so its line must stay low; the others rest while there is nothing to check.", seconds,
			ask{sinceRun("max", "", "check"), "{{check}}"}),
		bars("Findings", "What unhealthy checks found.", count,
			ask{sum(increase("watchdog_findings_total", interval), "finding"), "{{finding}}"}).beside(),
	)
	g.row(8,
		lines("Alerts", "Alerts that are raised and not cleared, by check.", count, ask{sum(current("alerts_active"), "check"), "{{check}}"}),
		stacked("Renewals", "Renewals per second, by what came of them.", perSecond, ask{sum(rate("renewals_total"), "outcome"), "{{outcome}}"}),
	)
	g.wide(9,
		table("Recoveries", "Actions of the watchdog in the time shown, each counted once, when it is known what came of it.", "action",
			recoveries("told"), recoveries("helped"), recoveries("not_helped"), recoveries("unsettled"), recoveries("declined"), recoveries("gave_up")),
		gauges("Events", "Events in the time shown, as the log has them.", count, plain,
			ask{sum(increase("events_total", whole), "kind"), "{{kind}}"}),
	)
	g.row(8,
		lines("Goroutines", "Goroutines of each process, parked waiters included.", count,
			ask{aggregate("max", current("goroutines"), []string{"instance"}), "{{instance}}"}),
		bars("What metrics and log did not get", "dropped: events that nobody was told of, because too many waited. other: reports of classes above MaxClasses. unrecognized: mistakes of a program that feeds the Collector itself.", count,
			ask{sum(increase("events_dropped_total", interval)), "dropped events"},
			ask{sum(increase("class_overflows_total", interval)), "reports as class other"},
			ask{sum(increase("unrecognized_reports_total", interval)), "unrecognized reports"}),
	)
	return dashboard("anteroom-redis", "Anteroom / watchdog and Redis",
		"Whether Redis serves the locks, and whether the watchdog that looks after them is well.", g.panels)
}

// recoveries is the column of one outcome.
func recoveries(outcome string) column {
	return column{ask{sum(increase("recoveries_total", whole, `outcome="`+outcome+`"`), "action"), outcome}, count, 0}
}
