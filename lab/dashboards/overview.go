package dashboards

// overview answers whether anything is wrong, and with which class of locks.
func overview() Dashboard {
	var g grid
	g.row(4,
		stat("Locks held", "Locks held now, by any process.", count, plain, sum(current("held"))),
		stat("Callers waiting", "Goroutines waiting for a lock now. Redis does not know them: they wait inside their processes.", count, plain,
			sum(current("waiters"))),
		stat("Locks lost", "Holds lost in the selected time range: their work may have overlapped with another holder's. Should be 0.", count, happened,
			sum(increase("lost_total", whole))),
		stat("Alerts", "Watchdog alerts raised and not yet cleared. Should be 0.", count, happened, sum(current("alerts_active"))),
		stat("No subscription", "Managers without a subscription connection: their waiters are not called, and ask. Includes Managers that have not had to wait yet.",
			count, warnFrom(0.5, 2), sum(current("managers"))+" - "+sum(current("subscriptions_up"))),
		stat("Watchdog seen", "Time since the last check of the connection, the longest of all processes. It grows when a watchdog hangs.",
			seconds, warnFrom(30, 120), sinceRun("max", `check="connection"`)),
	)
	g.row(8,
		lines("Locks acquired", "Acquisitions per second by class, including hand-offs and re-entries.", perSecond,
			ask{sum(rate("acquire_attempts_total", `outcome="acquired"`), "class"), "{{class}}"}),
		lines("Attempts that got no lock", "refused: held by another. cancelled: the caller gave up. The others are problems with Redis.", perSecond,
			ask{sum(rate("acquire_attempts_total", `outcome!="acquired"`), "outcome"), "{{outcome}}"}),
	)
	g.row(8,
		lines("Waiting callers", "Waiting callers, by class. If a line only climbs, work arrives faster than the lock serves it.", count,
			ask{sum(current("waiters"), "class"), "{{class}}"}),
		lines("Held locks", "Locks held, by class.", count, ask{sum(current("held"), "class"), "{{class}}"}),
	)
	g.row(8,
		lines("Longest wait now", "Age of the longest present wait, by class. The quantiles below show waits only once they are over.", seconds,
			ask{greatest(current("oldest_wait_age_seconds"), "class"), "{{class}}"}),
		lines("Longest hold now", "Age of the oldest present hold, by class.", seconds,
			ask{greatest(current("oldest_hold_age_seconds"), "class"), "{{class}}"}),
	)
	byClass := []string{"class"}
	g.row(8,
		lines("Wait for a lock, 99 %", "99 of 100 callers that acquired the lock waited no longer than this. Failed attempts are not included.", seconds,
			ask{quantile(0.99, "acquire_wait_seconds", byClass), "{{class}}"}),
		lines("Hold time, 99 %", "99 of 100 holds were no longer than this.", seconds,
			ask{quantile(0.99, "hold_seconds", byClass), "{{class}}"}),
	)
	g.row(8,
		lines("Lease left at renewals, lowest 1 %", "Time left on the lease when a renewal was confirmed. It predicts losses: near the lease minus the renewal time is healthy, 0 is a lost lock.",
			seconds, ask{quantile(0.01, "renewal_margin_seconds", byClass), "{{class}}"}),
		bars("Losses", "Lost locks, by class. The dashboard of one class shows the reasons.", count,
			ask{sum(increase("lost_total", interval), "class"), "{{class}}"}),
	)
	g.row(8,
		lines("Share of hand-offs", "Acquisitions handed off by a goroutine of the same process, without a command to Redis. Re-entries are excluded.", share,
			ask{sum(rate("acquire_attempts_total", `via="handoff"`), "class") + " / " +
				sum(rate("acquire_attempts_total", `outcome="acquired"`, `via!="reentry"`), "class"), "{{class}}"}).atMost(1),
		lines("Commands to Redis that failed", "Commands without a usable answer, per second. unknown: the answer was lost, the command may have taken effect.", perSecond,
			ask{sum(rate("redis_commands_total", `outcome=~"failed|unknown"`), "outcome"), "{{outcome}}"}),
	)
	g.wide(9,
		table("Classes", "Each class of locks, at the end of the selected time range. Wait and hold are means.", "class",
			column{ask{sum(rate("acquire_attempts_total", `outcome="acquired"`), "class"), "acquired/s"}, perSecond, 1},
			column{ask{sum(current("held"), "class"), "held"}, count, 0},
			column{ask{sum(current("waiters"), "class"), "waiting"}, count, 0},
			column{ask{mean("acquire_wait_seconds", byClass), "wait"}, seconds, 1},
			column{ask{mean("hold_seconds", byClass), "hold"}, seconds, 1},
			column{ask{sum(increase("lost_total", whole), "class"), "lost"}, count, 0}),
		gauges("Waiting by process", "Where the waiting callers are.", count, plain,
			ask{sum(current("waiters"), "instance"), "{{instance}}"}),
	)
	return dashboard("anteroom-overview", "Anteroom / overview",
		"Locks that processes share through Redis: is anything wrong, and with which class.", g.panels)
}

// sinceRun is the time since the last run of a check. A check that has never run is left out.
func sinceRun(op, matcher string, by ...string) string {
	var matchers []string
	if matcher != "" {
		matchers = []string{matcher}
	}
	return aggregate(op, "time() - ("+current("watchdog_last_run_timestamp_seconds", matchers...)+" > 0)", by)
}
