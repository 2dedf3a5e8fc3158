package dashboards

// overview is for the question whether anything is wrong, and with which class of locks.
func overview() Dashboard {
	var g grid
	g.row(4,
		stat("Locks held", "Locks that are held now, by any process.", count, plain, sum(current("held"))),
		stat("Callers waiting", "Goroutines that wait for a lock now. Redis does not know them: they wait inside their processes.", count, plain,
			sum(current("waiters"))),
		stat("Locks lost", "Holds that were lost in the time shown: their work may have run beside another holder's. Should be 0.", count, happened,
			sum(increase("lost_total", whole))),
		stat("Alerts", "Alerts of the watchdog that are raised and not cleared. Should be 0.", count, happened, sum(current("alerts_active"))),
		stat("No subscription", "Managers without a subscription connection: their waiters are woken by polling only. One that has not had to wait yet is counted too.",
			count, warnFrom(0.5, 2), sum(current("managers"))+" - "+sum(current("subscriptions_up"))),
		stat("Watchdog seen", "Time since the last check of the connection, in the process where that is longest. It grows when a watchdog stands still.",
			seconds, warnFrom(30, 120), sinceRun("max", `check="connection"`)),
	)
	g.row(8,
		lines("Locks acquired", "Acquisitions per second by class, hand-offs and re-entries included.", perSecond,
			ask{sum(rate("acquire_attempts_total", `outcome="acquired"`), "class"), "{{class}}"}),
		lines("Attempts that got no lock", "refused: another held it. cancelled: the caller's patience ended. The others are trouble with Redis.", perSecond,
			ask{sum(rate("acquire_attempts_total", `outcome!="acquired"`), "outcome"), "{{outcome}}"}),
	)
	g.row(8,
		lines("Waiting callers", "Callers that wait, by class. A line that only climbs is work that arrives faster than the lock lets it through.", count,
			ask{sum(current("waiters"), "class"), "{{class}}"}),
		lines("Held locks", "Locks held, by class.", count, ask{sum(current("held"), "class"), "{{class}}"}),
	)
	g.row(8,
		lines("Longest wait now", "How long the caller has waited that waits longest, by class. Waits show in the quantiles below only when they are over.", seconds,
			ask{greatest(current("oldest_wait_age_seconds"), "class"), "{{class}}"}),
		lines("Longest hold now", "How long the oldest hold has lasted that has not ended, by class.", seconds,
			ask{greatest(current("oldest_hold_age_seconds"), "class"), "{{class}}"}),
	)
	byClass := []string{"class"}
	g.row(8,
		lines("Wait for a lock, 99 %", "99 of 100 callers who got the lock waited no longer than this. Attempts that failed are not in it.", seconds,
			ask{quantile(0.99, "acquire_wait_seconds", byClass), "{{class}}"}),
		lines("Hold time, 99 %", "99 of 100 holds were no longer than this.", seconds,
			ask{quantile(0.99, "hold_seconds", byClass), "{{class}}"}),
	)
	g.row(8,
		lines("Lease left at renewals, lowest 1 %", "What was left of the lease when a renewal was confirmed. It predicts losses: near the lease minus the renewal time is healthy, 0 is a lost lock.",
			seconds, ask{quantile(0.01, "renewal_margin_seconds", byClass), "{{class}}"}),
		bars("Losses", "Locks that were lost, by class. The dashboard of one class shows the reasons.", count,
			ask{sum(increase("lost_total", interval), "class"), "{{class}}"}),
	)
	g.row(8,
		lines("Share of hand-offs", "Acquisitions that came from a goroutine of the same process, without a command to Redis. Re-entries are left out.", share,
			ask{sum(rate("acquire_attempts_total", `via="handoff"`), "class") + " / " +
				sum(rate("acquire_attempts_total", `outcome="acquired"`, `via!="reentry"`), "class"), "{{class}}"}).atMost(1),
		lines("Commands to Redis that failed", "Commands without a usable answer, per second. unknown: the answer was lost, the command may have taken effect.", perSecond,
			ask{sum(rate("redis_commands_total", `outcome=~"failed|unknown"`), "outcome"), "{{outcome}}"}),
	)
	g.wide(9,
		table("Classes", "Each class of locks, for the moment at the end of the time shown. Wait and hold are means.", "class",
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

// sinceRun is the time since a check was made. A check that was never made is left out.
func sinceRun(op, matcher string, by ...string) string {
	var matchers []string
	if matcher != "" {
		matchers = []string{matcher}
	}
	return aggregate(op, "time() - ("+current("watchdog_last_run_timestamp_seconds", matchers...)+" > 0)", by)
}
