package promise

import (
	"fmt"

	"github.com/anteroom/anteroom/internal/testredis"
)

// Plan is the size of the measurement.
type Plan struct {
	Leases int // at least this many lost leases for each distribution
	Holds  int // at once, in each round

	// Failed is called for each round that could not be carried out, for example because the machine was so busy that
	// a client gave up acquiring. Such rounds are repeated and do not count.
	Failed func(error)
}

// Kind is a part of the promise.
type Kind struct {
	Name    string
	Removal bool
	round   func(lib Library, s *testredis.Server, n int) ([]Sample, error)
	part    int // divisor of Plan.Leases
}

// Kinds are all parts of the promise; the removals share one set of leases.
var Kinds = kinds()

func kinds() []Kind {
	expiry := func(how Outage) func(Library, *testredis.Server, int) ([]Sample, error) {
		return func(lib Library, s *testredis.Server, n int) ([]Sample, error) { return Expiry(lib, s, n, how) }
	}
	all := []Kind{
		{"expiry, holder cut off", false, expiry(CutOff), 1},
		{"expiry, Redis stopped", false, expiry(Stopped), 1},
		{"stopped holder", false, Paused, 1},
	}
	for _, k := range Removals() {
		all = append(all, Kind{
			"removal, " + k.String(), true,
			func(lib Library, s *testredis.Server, n int) ([]Sample, error) { return Removed(lib, s, n, k) },
			len(Removals()),
		})
	}
	return all
}

// Rounds that failed, or that lost their leases early, as on an overloaded machine, are repeated up to this factor.
const retries = 3

// Measure runs rounds of one kind on a server of its own until each of the two kinds of notification has the leases
// of the plan.
func Measure(tb testredis.TB, lib Library, k Kind, p Plan) ([]Distribution, error) {
	s := testredis.Start(tb)
	want := max(p.Leases/k.part, 1)
	holds := min(p.Holds, 2*want)
	var samples []Sample
	var failed error
	for range retries * (2*want/holds + 1) {
		more, err := k.round(lib, s, holds)
		if err != nil {
			failed = fmt.Errorf("%s: %w", k.Name, err)
			p.Failed(failed)
			continue
		}
		samples = append(samples, more...)
		a, b := Collect(lib.Name, k.Name, samples)
		if a.N >= want && b.N >= want {
			return []Distribution{a, b}, nil
		}
	}
	if failed != nil {
		return nil, failed
	}
	return nil, fmt.Errorf("%s: %s lost its leases before anything was done to them", k.Name, lib.Name)
}
