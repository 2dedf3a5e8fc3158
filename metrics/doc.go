// Package metrics exports the activity of locks to Prometheus. Managers report to the hooks of a
// Collector.Observer, and a registry reads the Collector:
//
//	c, err := metrics.New(metrics.Config{})
//	m, err := anteroom.NewManager(rdb, anteroom.Config{Observer: c.Observer(), Attach: func(m *anteroom.Manager) { c.Attach(m) }})
//	registry.MustRegister(c)
//
// Instrument does that, and wires up the debug page, in one call.
//
// It sends no commands to Redis, makes no decisions about locks, and registers itself nowhere: what is exported, and
// to whom, is up to the program. docs/reference/metrics.md lists every metric with its labels and maps them to the figures of
// docs/internals/decisions.md, section 14.
//
// # Picture
//
//	Manager ── Acquired, Released, Renewed, … ──► Collector ◄── Collect ── registry ◄── scrape
//	                                               │     │
//	                     counters, histograms ◄────┘     └────► Counts of each attached Manager
//	                     pushed at the event                    pulled at the scrape
//
//	class name ──► table (never changed, only replaced) ──► the class's series, created in advance
//
// Counters and histograms are pushed, because an event is over when the scrape comes. Holds and waiters are pulled:
// the Manager knows them exactly, so there is no second account to drift.
//
// # Invariants
//
//	I1  A series of which a single event raises an alert, or by which an alert divides, exists as 0 before its first event:
//	    without a class from New on, of a class as soon as that is known. With Config.Detail so does every series of a
//	    closed set of labels. Any other counter, and alerts_active, is exported while it is not 0.
//	I2  The label class has at most Config.MaxClasses+1 values, with any names of locks. No label ever carries a
//	    key.
//	I3  An observer method never waits and never allocates once its class is known. The first report of a class creates
//	    the class's series, under a lock. Exception: at a value that needs more than 160 native buckets, client_golang
//	    widens them under the lock of that histogram.
//	I4  held and waiters are the sums of what the attached Managers return at the scrape, the ages are the maxima. Every
//	    known class has all four.
//	I5  A report with a value outside the closed sets creates no series. It is counted in unrecognized_reports_total and
//	    nowhere else.
//	I6  Two Collectors share nothing. With different Namespaces, or different values of ConstLabels, both can be in one
//	    registry.
//	I7  Every histogram is classic and native: a server that asks for protobuf gets both, any other the classic buckets.
//
// # Lock order
//
// There are two mutexes, both of package facts: that of Classes (a new class) and that of Sources (Attach). Neither is
// held while the other is taken, while a Manager is asked for its Counts, or while a metric is sent to the registry. So
// an observer method may be called under any lock of the Manager's, and a slow scrape delays no lock.
package metrics
