package lettucecompat_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// The benchmarks of this file are Redis' own time for a command: the least mean of windows that are short enough to be
// undisturbed now and then.

// redisTime measures what do costs each time that it sends a script.
func redisTime(b *testing.B, bed *bed, scripts float64, do func()) {
	best := math.Inf(1)
	do()
	for b.Loop() {
		bed.raw.ConfigResetStat(ctx)
		for range 100 {
			do()
		}
		best = min(best, scripts*usecPerScript(b, bed))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(best, "redis-µs/op")
}

// BenchmarkRedisTime_Pair is an acquire and a release where nobody else is there.
func BenchmarkRedisTime_Pair(b *testing.B) {
	bed := onReal(b, nil)
	c := newClient(b, bed.raw)
	redisTime(b, bed, 2, func() {
		if c.Do(ctx, asks("k", 1)).Word != has || c.Do(ctx, gives("k", 1)).Word != hasNothing {
			b.Fatal("failed")
		}
	})
}

// BenchmarkRedisTime_Line is a turn and a confirmation while so many others wait.
func BenchmarkRedisTime_Line(b *testing.B) {
	for _, n := range []int{2, 16} {
		for what, do := range map[string]func(line []*peer) []*peer{
			"yield": func(line []*peer) []*peer {
				a := line[0]
				a.wantWord("yield", a.yield(), waits)
				line = append(line[1:], a)
				line[0].called()
				return line
			},
			"confirm": func(line []*peer) []*peer {
				p := line[len(line)/2+1]
				p.wantWord("confirm", p.confirm(), waits)
				return line
			},
		} {
			b.Run(what+"/"+strconv.Itoa(n), func(b *testing.B) {
				bed := onReal(b, nil)
				var line []*peer
				for i := range n + 1 {
					line = append(line, bed.peer(b, "p"+strconv.Itoa(i)))
					line[i].acquire()
				}
				line[0].state(unit, 1, 1)
				redisTime(b, bed, 1, func() { line = do(line) })
			})
		}
	}
}

// BenchmarkRedisTime_Units is a command about an RWMutex: a read lock and its release, a renewal, and a confirmation behind a
// holder, beside so many readers.
func BenchmarkRedisTime_Units(b *testing.B) {
	for _, n := range []int{0, 10, 1000} {
		bed := onReal(b, nil)
		c := newClient(b, bed.raw, func(o *lettucecompat.Options) { o.ClientID = "p" })
		p := &peer{Client: c, t: b, key: "k", terms: rwTerms, n: first}
		readers := map[string]any{}
		ends := time.Now().Add(time.Hour).UnixMilli()
		for i := range n {
			readers["holder-"+strconv.Itoa(i)] = fmt.Sprintf("%d 1 %d 0 %d", int64(first), ends, all)
		}
		if n > 0 {
			readers[":"] = fmt.Sprintf("rw %d %d %d %d", all, n, ends, ends)
			bed.raw.HSet(ctx, "k", readers)
			bed.raw.PExpire(ctx, "k", time.Hour)
		}
		b.Run(fmt.Sprintf("pair/%d", n), func(b *testing.B) {
			redisTime(b, bed, 2, func() {
				p.wants("read", has, p.units(0, 0, 1))
				p.wants("release", hasNothing, p.units(1, 0, 0))
			})
		})
		b.Run(fmt.Sprintf("renew/%d", n), func(b *testing.B) {
			p.wants("read", has, p.units(0, 0, 1))
			redisTime(b, bed, 1, func() { p.wants("renew", has, p.units(1, 1, 1)) })
			p.wants("release", hasNothing, p.units(1, 0, 0))
		})
		if n > 0 {
			b.Run(fmt.Sprintf("confirm/%d", n), func(b *testing.B) {
				p.wants("write", waits, p.units(0, 0, all))
				redisTime(b, bed, 1, func() { p.wants("confirm", waits, p.units(-1, all, all)) })
				p.wants("cancel", hasNothing, p.units(0, 0, 0))
			})
		}
	}
}
