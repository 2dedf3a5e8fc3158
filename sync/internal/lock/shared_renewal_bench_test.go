package lock

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRenewals renews a thousand locks that one process holds, and reports how long Redis works for each, in the best
// round. The time of an operation is that until all are renewed.
//
//	go test -run '^$' -bench Renewals -benchtime 20x ./sync/internal/lock
func BenchmarkRenewals(b *testing.B) {
	const locks = 1000
	lease := func(s *Settings) {
		s.Lease = Lease{For: time.Hour, Period: 20 * time.Minute, Margin: time.Minute}
		s.Timeout = time.Minute
	}
	for _, kind := range []string{"Mutex", "units"} {
		b.Run(kind, func(b *testing.B) {
			s, client := fresh(b)
			p := newShares(b, client(), 0, lease)
			for i := range locks {
				if name := fmt.Sprint("k", i); kind == "Mutex" {
					o := p.mustAcquire(b, name)
					defer mustRelease(b, o)
				} else {
					k := p.Key(name, p.set)
					defer k.Done()
					if err := k.Enter(b.Context(), 0, 1, 0); err != nil {
						b.Fatal(err)
					}
					defer k.Leave(1, 0)
				}
			}
			renewed := func() (n int) {
				for _, k := range p.All() {
					n += int(k.Held().lease.Renewals())
				}
				for _, k := range p.All() {
					n += int(k.Held().lease.Renewals())
				}
				return n
			}
			eventually(b, "the call leases were renewed", func() bool { return renewed() >= locks })
			time.Sleep(time.Second)
			least := time.Hour // that of the round in which nothing else had the server's processor
			for b.Loop() {
				before, n := s.ScriptTime(b), renewed()
				until := n + locks
				for _, k := range p.All() {
					k.Held().lease.Hurry()
				}
				for _, k := range p.All() {
					k.Held().lease.Hurry()
				}
				for renewed() < until {
					time.Sleep(time.Millisecond)
				}
				b.StopTimer()
				least = min(least, (s.ScriptTime(b)-before)/time.Duration(renewed()-n))
				time.Sleep(1100 * time.Millisecond) // the time to live of a key moves at most once a second
				b.StartTimer()
			}
			b.ReportMetric(float64(least.Nanoseconds())/1000, "Redis-µs/renewal")
		})
	}
}
