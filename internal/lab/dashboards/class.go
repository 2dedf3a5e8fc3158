package dashboards

// class is for the question what goes on with one class of locks. Choosing several adds
// them up.
func class() Dashboard {
	var g grid
	const wait, hold, margin = "acquire_wait_seconds", "hold_seconds", "renewal_margin_seconds"
	g.row(4,
		stat("Held", "Locks of the class that are held now.", count, plain, sum(current("held"))),
		stat("Waiting", "Callers that wait now.", count, plain, sum(current("waiters"))),
		stat("Acquired per second", "Acquisitions per second, hand-offs and re-entries included.", perSecond, plain,
			sum(rate("acquire_attempts_total", `outcome="acquired"`))),
		stat("Successful attempts", "Share of all attempts that got the lock. TryLock of a busy lock counts as an attempt.", share, plain,
			sum(rate("acquire_attempts_total", `outcome="acquired"`))+" / "+sum(rate("acquire_attempts_total"))),
		stat("Successful renewals", "Share of the renewals that kept or took back the lock. Below 1 something is in the way.", share, goodFrom(0.9, 0.99),
			sum(rate("renewals_total", `outcome=~"renewed|reacquired"`))+" / "+sum(rate("renewals_total"))),
		stat("Lost", "Holds lost in the time shown. Should be 0.", count, happened, sum(increase("lost_total", whole))),
	)
	g.row(8,
		stacked("Attempts", "Attempts to get the lock per second, by how they ended.", perSecond,
			ask{sum(rate("acquire_attempts_total"), "outcome"), "{{outcome}}"}),
		stacked("How the lock came", "Acquisitions per second. redis: granted by Redis. handoff: from a goroutine of the same process. reentry: by who had it already.", perSecond,
			ask{sum(rate("acquire_attempts_total", `outcome="acquired"`), "via"), "{{via}}"}),
	)
	g.row(8,
		lines("Wait for the lock", "How long those waited who got it. Re-entries are not included.", seconds,
			ask{quantile(0.5, wait, nil), "50 %"}, ask{quantile(0.9, wait, nil), "90 %"}, ask{quantile(0.99, wait, nil), "99 %"}, ask{mean(wait, nil), "mean"}),
		lines("Hold time", "From getting the lock to letting it go. Inner holds of a reentrant lock are not included.", seconds,
			ask{quantile(0.5, hold, nil), "50 %"}, ask{quantile(0.9, hold, nil), "90 %"}, ask{quantile(0.99, hold, nil), "99 %"}, ask{mean(hold, nil), "mean"}),
	)
	g.row(8,
		lines("Held and waiting", "Counted at each scrape.", count,
			ask{sum(current("held")), "held"}, ask{sum(current("waiters")), "waiting"}),
		lines("Longest hold and wait now", "How long the oldest hold has lasted that has not ended, and how long the caller has waited that waits longest.", seconds,
			ask{greatest(current("oldest_hold_age_seconds")), "hold"}, ask{greatest(current("oldest_wait_age_seconds")), "wait"}),
	)
	g.row(8,
		lines("Alerts", "Alerts of the watchdog that are raised and not cleared, by check. Those about the whole process have class default.", count,
			ask{sum(current("alerts_active"), "check"), "{{check}}"}),
		stacked("Releases", "Holds that their owner ended, per second. lost: the lock was gone before. unknown and unavailable are tried again in the background.", perSecond,
			ask{sum(rate("releases_total"), "outcome"), "{{outcome}}"}),
	)
	g.row(8,
		lines("Renewals", "Renewals per second. failed: no usable answer, tried again. refused: the lock was gone. reacquired: taken back.", perSecond,
			ask{sum(rate("renewals_total"), "outcome"), "{{outcome}}"}),
		lines("Lease left at renewals", "What was left of the lease when a renewal was confirmed. The lowest line falls before locks are lost.", seconds,
			ask{quantile(0.01, margin, nil), "lowest 1 %"}, ask{quantile(0.1, margin, nil), "lowest 10 %"}, ask{quantile(0.5, margin, nil), "50 %"}),
	)
	g.row(8,
		bars("Losses", "Locks that were lost, by reason. deadline: no renewal in time. gone: deleted or expired in Redis. forced: ForceRelease.", count,
			ask{sum(increase("lost_total", interval), "reason"), "{{reason}}"}),
	)
	byInstance := []string{"instance"}
	g.wide(9,
		table("Processes", "Each process, for the moment at the end of the time shown. Wait and hold are means.", "instance",
			column{ask{sum(rate("acquire_attempts_total", `outcome="acquired"`), "instance"), "acquired/s"}, perSecond, 1},
			column{ask{sum(current("held"), "instance"), "held"}, count, 0},
			column{ask{sum(current("waiters"), "instance"), "waiting"}, count, 0},
			column{ask{mean(wait, byInstance), "wait"}, seconds, 1},
			column{ask{mean(hold, byInstance), "hold"}, seconds, 1},
			column{ask{sum(increase("lost_total", whole), "instance"), "lost"}, count, 0}),
		gauges("How attempts ended", "Attempts in the time shown.", count, plain,
			ask{sum(increase("acquire_attempts_total", whole), "outcome"), "{{outcome}}"}),
	)
	return dashboard("anteroom-class", "Anteroom / one lock class",
		"What goes on with one class of locks: choose it above. Several are added up.", g.panels)
}
