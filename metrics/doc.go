// Package metrics shows what locks do, in Prometheus. Its Collector is an
// anteroom.Observer, which is told what happens, and a prometheus.Collector, which
// a registry asks:
//
//	c, err := metrics.New(metrics.Config{})
//	m, err := anteroom.NewManager(rdb, anteroom.Config{Observer: c})
//	c.Attach(m)
//	registry.MustRegister(c)
//
// It never sends a command to Redis, decides nothing about locks, and registers
// itself nowhere: what is exported, and to whom, is the program's choice.
// docs/metrics.md lists every metric with its labels and says which figure of
// docs/design.md, section 14, it answers.
//
// # Picture
//
//	Manager ── Acquired, Released, Renewed, … ──► Collector ◄── Collect ── registry ◄── scrape
//	                                               │     │
//	                     counters, histograms ◄────┘     └────► Counts of each attached Manager
//	                     pushed at the event                    pulled at the scrape
//
//	class name ──► table (never changed, only replaced) ──► the class's series, ready made
//
// Counters and histograms are pushed, because an event is over when the scrape
// comes. What is held and who waits is pulled: the Manager knows it exactly, so no
// second account can drift away from it.
//
// # Invariants
//
//	I1  Every series of a closed set of labels exists, as 0, before its first event:
//	    those without a class from New on, those of a class as soon as it is known.
//	    So a rate sees the first loss, and an alert rule never reads nothing for none.
//	I2  The label class has at most Config.MaxClasses+1 values, whatever the names of
//	    the locks are. No label ever carries a key.
//	I3  An observer method waits for nobody and allocates nothing, once its class is
//	    known. The first report of a class makes the class's series, under mu.
//	I4  held and waiters are the sums of what the attached Managers say at the scrape,
//	    and the ages the greatest. Every known class has all four.
//	I5  A report with a value outside the closed sets makes no series. It is counted
//	    in unrecognized_reports_total and in nothing else.
//	I6  Two Collectors share nothing. With another Namespace, or other values of
//	    ConstLabels, both fit into one registry.
//	I7  Every histogram has classic buckets, also with NativeHistograms, because a
//	    server that does not scrape native ones would see nothing.
//
// # Lock order
//
// There are two mutexes: classes.mu (a new class) and sources.mu (Attach). Neither
// is held while the other is taken, while a Manager is asked for its Counts, or
// while a metric is handed to the registry. So an observer method may be called
// under any lock of the Manager's, and a scrape that is slow delays no lock.
package metrics
