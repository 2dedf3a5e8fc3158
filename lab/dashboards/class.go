package dashboards

// class answers what happens in one class of locks. Several chosen classes are added up.
func class() Dashboard {
	var g grid
	const wait, hold, margin = "acquire_wait_seconds", "hold_seconds", "renewal_margin_seconds"
	g.row(4,
		stat("Held", "Locks of the class held now.", count, plain, sum(current("held"))),
		stat("Waiting", "Callers waiting now.", count, plain, sum(current("waiters"))),
		stat("Acquired per second", "Acquisitions per second, including hand-offs and re-entries.", perSecond, plain,
			sum(rate("acquire_attempts_total", `outcome="acquired"`))),
		stat("Successful attempts", "Share of all attempts that acquired the lock. TryLock of a held lock counts as an attempt.", share, plain,
			sum(rate("acquire_attempts_total", `outcome="acquired"`))+" / "+sum(rate("acquire_attempts_total"))),
		stat("Successful renewals", "Share of renewals that kept the lock. Below 1, something interferes.", share, goodFrom(0.9, 0.99),
			sum(rate("renewals_total", `outcome="renewed"`))+" / "+sum(rate("renewals_total"))),
		stat("Lost", "Holds lost in the selected time range. Should be 0.", count, happened, sum(increase("lost_total", whole))),
	)
	g.row(8,
		stacked("Attempts", "Attempts to acquire the lock per second, by outcome.", perSecond,
			ask{sum(rate("acquire_attempts_total"), "outcome"), "{{outcome}}"}),
		stacked("How the lock came", "Acquisitions per second. redis: granted by Redis. handoff: from a goroutine of the same process. reentry: by its present owner.", perSecond,
			ask{sum(rate("acquire_attempts_total", `outcome="acquired"`), "via"), "{{via}}"}),
	)
	g.row(8,
		lines("Wait for the lock", "Wait of the attempts that acquired the lock, except re-entries.", seconds,
			ask{quantile(0.5, wait, nil), "50 %"}, ask{quantile(0.9, wait, nil), "90 %"}, ask{quantile(0.99, wait, nil), "99 %"}, ask{mean(wait, nil), "mean"}),
		lines("Hold time", "From acquiring the lock to releasing it, except nested holds.", seconds,
			ask{quantile(0.5, hold, nil), "50 %"}, ask{quantile(0.9, hold, nil), "90 %"}, ask{quantile(0.99, hold, nil), "99 %"}, ask{mean(hold, nil), "mean"}),
	)
	g.row(8,
		lines("Held and waiting", "Counted at each scrape.", count,
			ask{sum(current("held")), "held"}, ask{sum(current("waiters")), "waiting"}),
		lines("Longest hold and wait now", "Age of the oldest present hold and of the longest present wait.", seconds,
			ask{greatest(current("oldest_hold_age_seconds")), "hold"}, ask{greatest(current("oldest_wait_age_seconds")), "wait"}),
	)
	g.row(8,
		lines("Alerts", "Watchdog alerts raised and not yet cleared, by check. Alerts about the whole process have class default.", count,
			ask{sum(current("alerts_active"), "check"), "{{check}}"}),
		stacked("Releases", "Holds released by their owner, per second. lost: the lock had been lost before. unknown and unavailable are retried in the background.", perSecond,
			ask{sum(rate("releases_total"), "outcome"), "{{outcome}}"}),
	)
	g.row(8,
		lines("Renewals", "Renewals per second. failed: no usable answer, retried. refused: the lock was gone.", perSecond,
			ask{sum(rate("renewals_total"), "outcome"), "{{outcome}}"}),
		lines("Lease left at renewals", "Time left on the lease when a renewal was confirmed. The lowest line falls before locks are lost.", seconds,
			ask{quantile(0.01, margin, nil), "lowest 1 %"}, ask{quantile(0.1, margin, nil), "lowest 10 %"}, ask{quantile(0.5, margin, nil), "50 %"}),
	)
	g.row(8,
		stacked("Calls", "Times per second that Redis gave a lock to a process in line for it. entered: the process learned it from the message. found: no message came, and the process looked.", perSecond,
			ask{sum(rate("calls_total"), "how"), "{{how}}"}),
		bars("Losses", "Lost locks, by reason. deadline: no renewal in time. gone: deleted or expired in Redis. forced: ForceRelease.", count,
			ask{sum(increase("lost_total", interval), "reason"), "{{reason}}"}),
	)
	byInstance := []string{"instance"}
	g.wide(9,
		table("Processes", "Each process, at the end of the selected time range. Wait and hold are means.", "instance",
			column{ask{sum(rate("acquire_attempts_total", `outcome="acquired"`), "instance"), "acquired/s"}, perSecond, 1},
			column{ask{sum(current("held"), "instance"), "held"}, count, 0},
			column{ask{sum(current("waiters"), "instance"), "waiting"}, count, 0},
			column{ask{mean(wait, byInstance), "wait"}, seconds, 1},
			column{ask{mean(hold, byInstance), "hold"}, seconds, 1},
			column{ask{sum(increase("lost_total", whole), "instance"), "lost"}, count, 0}),
		gauges("How attempts ended", "Attempts in the selected time range.", count, plain,
			ask{sum(increase("acquire_attempts_total", whole), "outcome"), "{{outcome}}"}),
	)
	return dashboard("anteroom-class", "Anteroom / one lock class",
		"One class of locks, chosen above. Several are added up.", g.panels)
}
