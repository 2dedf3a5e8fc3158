package dashboards

// redis answers whether Redis serves the locks, and whether the watchdog itself works.
func redis() Dashboard {
	var g grid
	healthOf := func(check string) string {
		sel := `check="` + check + `"`
		return sum(rate("watchdog_checks_total", sel, `outcome="healthy"`)) + " / " + sum(rate("watchdog_checks_total", sel, `outcome!="unknown"`))
	}
	g.row(4,
		stat("Managers", "Managers that export metrics.", count, plain, sum(current("managers"))),
		stat("Subscriptions up", "Subscription connections: one for each Manager that needed one.", count, plain, sum(current("subscriptions_up"))),
		stat("Commands failed", "Share of commands to Redis without a usable answer.", share, warnFrom(0.001, 0.05),
			sum(rate("redis_commands_total", `outcome=~"failed|unknown"`))+" / "+sum(rate("redis_commands_total"))),
		stat("Renewals healthy", "Share of the watchdog's checks of renewals that found nothing.", share, goodFrom(0.9, 0.99), healthOf("renewal")),
		stat("Lock states healthy", "Share of the watchdog's queries to Redis about held locks that found what was expected.", share, goodFrom(0.9, 0.99), healthOf("lock_status")),
		stat("Connection healthy", "Share of the watchdog's checks of the connection that found nothing.", share, goodFrom(0.9, 0.99), healthOf("connection")),
	)
	byCommand := []string{"command"}
	g.row(8,
		stacked("Commands to Redis", "Commands per second. Many renewals share one command.", perSecond,
			ask{sum(rate("redis_commands_total"), "command"), "{{command}}"}).beside(),
		stacked("Commands that failed", "failed: not executed, or an error. unknown: the answer was lost; it may have been executed.", perSecond,
			ask{sum(rate("redis_commands_total", `outcome=~"failed|unknown"`), "command", "outcome"), "{{command}}: {{outcome}}"}).beside(),
	)
	g.row(8,
		lines("Time of commands, 99 %", "Time until commands were completed or abandoned at their limit.", seconds,
			ask{quantile(0.99, "redis_command_seconds", byCommand), "{{command}}"}).beside(),
		lines("Round trip", "Pings and probes of the watchdog: the round trip to Redis, without work. A probe is a message through the subscription.", seconds,
			ask{quantile(0.5, "redis_command_seconds", byCommand, `command=~"ping|probe"`), "{{command}} 50 %"},
			ask{quantile(0.99, "redis_command_seconds", byCommand, `command=~"ping|probe"`), "{{command}} 99 %"}),
	)
	g.row(8,
		lines("Managers and subscriptions", "While a Manager's subscription is down, its waiters are not called, and ask.", count,
			ask{sum(current("managers")), "Managers"}, ask{sum(current("subscriptions_up")), "subscriptions up"}),
		bars("Connection events", "Events of Managers about Redis.", count,
			ask{sum(increase("events_total", interval, `kind=~"subscription_down|subscription_up|unavailable|available"`), "kind"), "{{kind}}"}),
	)
	g.row(8,
		lines("Checks of the watchdog", "Checks per second. holder and lock_status need held locks, recovery runs only after an action.", perSecond,
			ask{sum(rate("watchdog_checks_total"), "check"), "{{check}}"}),
		lines("Checks that found something", "Unhealthy and unknown checks per second. unknown: Redis or the machine did not answer, so nothing was found.", perSecond,
			ask{sum(rate("watchdog_checks_total", `outcome!="healthy"`), "check", "outcome"), "{{check}}: {{outcome}}"}).beside(),
	)
	g.row(8,
		lines("Since the last check", "The longest of all processes. connection is always checked, so its line must stay low; the others pause while there is nothing to check.", seconds,
			ask{sinceRun("max", "", "check"), "{{check}}"}),
		bars("Findings", "Findings of unhealthy checks.", count,
			ask{sum(increase("watchdog_findings_total", interval), "finding"), "{{finding}}"}).beside(),
	)
	g.row(8,
		lines("Alerts", "Alerts raised and not yet cleared, by check.", count, ask{sum(current("alerts_active"), "check"), "{{check}}"}),
		stacked("Renewals", "Renewals per second, by outcome.", perSecond, ask{sum(rate("renewals_total"), "outcome"), "{{outcome}}"}),
	)
	g.wide(9,
		table("Recoveries", "Recovery actions of the watchdog in the selected time range, each counted once its outcome is known.", "action",
			recoveries("told"), recoveries("helped"), recoveries("not_helped"), recoveries("unsettled"), recoveries("declined"), recoveries("gave_up")),
		gauges("Events", "Events in the selected time range, as in the log.", count, plain,
			ask{sum(increase("events_total", whole), "kind"), "{{kind}}"}),
	)
	g.row(8,
		lines("Goroutines", "Goroutines of each process, including parked waiters.", count,
			ask{aggregate("max", current("goroutines"), []string{"instance"}), "{{instance}}"}),
		bars("What metrics and log did not get", "dropped: events not delivered because the queue was full. other: reports of classes above MaxClasses. unrecognized: errors of a program that calls the Collector itself.", count,
			ask{sum(increase("events_dropped_total", interval)), "dropped events"},
			ask{sum(increase("class_overflows_total", interval)), "reports as class other"},
			ask{sum(increase("unrecognized_reports_total", interval)), "unrecognized reports"}),
	)
	return dashboard("anteroom-redis", "Anteroom / watchdog and Redis",
		"Whether Redis serves the locks, and whether the watchdog works.", g.panels)
}

// recoveries is the column of one outcome.
func recoveries(outcome string) column {
	return column{ask{sum(increase("recoveries_total", whole, `outcome="`+outcome+`"`), "action"), outcome}, count, 0}
}
