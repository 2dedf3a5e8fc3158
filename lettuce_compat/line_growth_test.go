package lettucecompat_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// The benchmarks of this file are how the line grows: Redis' own time for one command where n
// clients stand for one lock, and the memory that they take. The clients are names that one
// client stands for: Redis sees the same commands, fields and subscriptions.
//
//	go test -run '^$' -bench LineGrowth -count 3 ./lettuce_compat

// stander is a client that stands, with its newest field and attempt.
type stander struct {
	id      string
	n, send uint64
}

func (s *stander) field() string { return lettucecompat.NewField(s.id, s.n) }

// growing is the line of k, in which Redis' time for each command is measured.
type growing struct {
	*bed
	b     *testing.B
	c     *lettucecompat.Client
	line  []*stander
	costs map[string][]float64 // µs
	spare []*stander           // do not stand between two rounds
}

// newGrowing makes n clients stand behind the one that holds k. Those that hear are subscribed
// to their own channels; nobody knows that of the others.
func newGrowing(b *testing.B, n int, hear bool) (g *growing, holder *stander) {
	bed := onReal(b, nil)
	g = &growing{bed: bed, b: b, c: newPeer(b, bed.rdb, "all").Client, costs: map[string][]float64{}}
	g.c.Subscribe()
	eventually(b, "listens", g.c.Listening) // else it would say that none of them hears
	holder = &stander{id: "holder", n: first, send: nonce}
	g.stand(holder, ok, -1)
	channels := []string{"anteroom:client:" + holder.id}
	for i := range n {
		g.line = append(g.line, &stander{id: "waits" + strconv.Itoa(i), n: first, send: nonce})
		channels = append(channels, "anteroom:client:"+g.line[i].id)
		g.stand(g.line[i], refused, i)
	}
	for i := range inARow {
		g.spare = append(g.spare, &stander{id: "spare" + strconv.Itoa(i), n: first, send: nonce})
		channels = append(channels, "anteroom:client:"+g.spare[i].id)
	}
	if hear {
		g.subscribe(channels)
	}
	return g, holder
}

// subscribe has one connection listen to all of the channels, and drops what it hears.
func (g *growing) subscribe(channels []string) {
	s := g.raw.Subscribe(ctx)
	g.b.Cleanup(func() { _ = s.Close() })
	for some := range slices.Chunk(channels, 1000) {
		if err := s.Subscribe(ctx, some...); err != nil {
			g.b.Fatal(err)
		}
	}
	go func() {
		for range s.Channel() { // until it is closed
		}
	}()
	eventually(g.b, "subscriptions", func() bool {
		return g.raw.PubSubNumSub(ctx, channels[len(channels)-1]).Val()[channels[len(channels)-1]] == 1
	})
}

// stand asks for k with a new field of s.
func (g *growing) stand(s *stander, want lettucecompat.Outcome, ahead int) {
	s.n, s.send = s.n+1, s.send+1
	got := g.c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: "k", Field: s.field(), Lease: 10 * time.Minute, Attempt: s.send})
	if got.Outcome != want || got.Ahead != ahead && want == refused {
		g.b.Fatalf("%s: %+v, want %v behind %d", s.id, got, want, ahead)
	}
}

// release releases the newest field of s, or leaves the line.
func (g *growing) release(s *stander, left bool) {
	got := g.c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: s.field()})
	if got.Outcome != ok || got.Left != left {
		g.b.Fatalf("%s: release: %+v", s.id, got)
	}
}

// confirm confirms the place of s.
func (g *growing) confirm(s *stander) lettucecompat.PlaceReply {
	s.send++
	return g.c.Confirm(ctx, []lettucecompat.Place{{Key: "k", Field: s.field(), Attempt: s.send}}, 0)[0]
}

// spent is Redis' time for scripts so far.
func (g *growing) spent() (usec int64) {
	_, rest, _ := strings.Cut(g.raw.Info(ctx, "commandstats").Val(), "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec=")
	digits, _, _ := strings.Cut(rest, ",")
	usec, _ = strconv.ParseInt(digits, 10, 64)
	return usec
}

// measure does something so many times that sends one script, and notes Redis' mean time for it.
// A server that does nothing else is slower with each: its processor has forgotten the scripts.
func (g *growing) measure(what string, times int, do func()) {
	before := g.spent()
	for range times {
		do()
	}
	g.costs[what] = append(g.costs[what], float64(g.spent()-before)/float64(times))
}

// report reports the least of each: the windows are short enough to be undisturbed now and then.
func (g *growing) report() {
	g.b.ReportMetric(0, "ns/op")
	for what, all := range g.costs {
		g.b.ReportMetric(slices.Min(all), what+"-µs")
	}
}

// BenchmarkLineGrowth_Commands is Redis' time for each command where n to n + 20 clients stand.
func BenchmarkLineGrowth_Commands(b *testing.B) {
	for _, hear := range []bool{true, false} {
		for _, n := range []int{1, 100, 1000, 10_000} {
			b.Run(fmt.Sprintf("hear=%v/n=%d", hear, n), func(b *testing.B) {
				g, holder := newGrowing(b, n, hear)
				holder = g.round(holder) // the server gets to know the scripts
				clear(g.costs)
				for range 50 { // no longer than a place lives
					holder = g.round(holder)
				}
				for b.Loop() { // the number of rounds is fixed
				}
				g.report()
				used := g.raw.MemoryUsage(ctx, lineOfK, 0).Val()
				b.ReportMetric(float64(used)/float64(n), "B/place")
			})
		}
	}
}

// inARow is how many commands of a kind follow each other.
const inARow = 20

// round measures each command, and returns who holds k then. As many stand as before.
func (g *growing) round(holder *stander) *stander {
	stands := func() {
		g.stand(g.spare[0], refused, len(g.line))
		g.line, g.spare = append(g.line, g.spare[0]), g.spare[1:]
	}
	g.measure("stand", inARow, stands)
	g.measure("confirm", inARow, func() {
		one := g.line[rand.IntN(len(g.line))]
		if got := g.confirm(one); got.Outcome != ok || got.Called || got.Holder != holder.field() {
			g.b.Fatalf("%s: confirm: %+v", one.id, got)
		}
	})
	g.measure("try", inARow, func() {
		got := g.c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: "k", Field: lettucecompat.NewField("tries", first), Lease: time.Minute})
		if got.Outcome != refused || got.Standing {
			g.b.Fatalf("try: %+v", got)
		}
	})
	g.measure("release", inARow, func() {
		g.release(holder, false)
		g.spare = append(g.spare, holder)
		holder, g.line = g.line[0], g.line[1:]
	})
	g.measure("stand", inARow, stands)
	g.measure("turn", inARow, func() {
		next := g.line[0]
		got := g.c.EndTurn(ctx, lettucecompat.TurnRequest{
			Key: "k", Field: holder.field(), Lease: 10 * time.Minute,
			Next: lettucecompat.NewField(holder.id, holder.n+1), Attempt: holder.send + 1,
		})
		if got.Outcome != ok || !got.Standing || got.Holder != next.field() {
			g.b.Fatalf("%s: turn: %+v, want it for %s", holder.id, got, next.field())
		}
		holder.n, holder.send = holder.n+1, holder.send+1
		holder, g.line = next, append(g.line[1:], holder)
	})
	g.measure("leave", inARow, func() {
		last := g.line[len(g.line)-1]
		g.release(last, true)
		g.line, g.spare = g.line[:len(g.line)-1], append(g.spare, last)
	})
	return holder
}

// BenchmarkLineGrowth_Dead is a release where n dead places stand before one that lives: Redis'
// time for it, and for the commands that it takes until that one is called.
func BenchmarkLineGrowth_Dead(b *testing.B) {
	for _, n := range []int{64, 1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			g, holder := newGrowing(b, 1, true)
			x, commands := g.line[0], 0
			for b.Loop() {
				b.StopTimer()
				g.raw.Del(ctx, lineOfK)
				fillDead(b, g.bed, n)
				g.stand(x, refused, n)
				b.StartTimer()
				before := g.spent()
				g.measure("release", 1, func() { g.release(holder, false) })
				commands = 1
				for called := false; !called; commands++ {
					called = g.confirm(x).Called
				}
				g.costs["all"] = append(g.costs["all"], float64(g.spent()-before))
				b.StopTimer()
				g.raw.Del(ctx, "k")
				holder.n++
				g.raw.HSet(ctx, "k", holder.field(), "1")
				b.StartTimer()
			}
			took := b.Elapsed().Seconds() * 1000 / float64(b.N)
			g.report()
			b.ReportMetric(float64(commands), "commands")
			b.ReportMetric(took, "ms-until-called")
		})
	}
}

// BenchmarkLineGrowth_Confirm is Redis' time for a batch of confirmations, each of the only
// place for its lock.
func BenchmarkLineGrowth_Confirm(b *testing.B) {
	for _, n := range []int{1, 256} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			g, _ := newGrowing(b, 1, true)
			batch := make([]lettucecompat.Place, n)
			for i := range batch {
				batch[i] = lettucecompat.Place{Key: "key" + strconv.Itoa(i), Field: lettucecompat.NewField("x", first), Attempt: nonce}
				g.raw.HSet(ctx, batch[i].Key, "holder:"+strconv.FormatInt(first, 10), "1")
				g.c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: batch[i].Key, Field: batch[i].Field, Lease: time.Minute, Attempt: nonce})
			}
			g.c.Confirm(ctx, batch, 0)
			for range 50 {
				g.measure("batch", inARow, func() {
					if got := g.c.Confirm(ctx, batch, 0)[n-1]; got.Outcome != ok || got.Ahead != 0 {
						b.Fatalf("%+v", got)
					}
				})
			}
			for b.Loop() { // the number of rounds is fixed
			}
			g.report()
		})
	}
}

// BenchmarkLineGrowth_Client is the memory of Redis for a client that listens to its own
// channel: the connection by Redis' own count, and the subscription.
func BenchmarkLineGrowth_Client(b *testing.B) {
	const clients = 500
	bed := onReal(b, nil)
	all := make([]*redis.PubSub, clients)
	for i := range all {
		all[i] = bed.raw.Subscribe(ctx, "anteroom:client:web-7-31337-9f3c2a1b"+strconv.Itoa(1000+i))
		if _, err := all[i].Receive(ctx); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(10 * time.Second) // Redis makes the buffers of idle connections smaller
	for b.Loop() {               // there is nothing to repeat
	}
	sum := 0
	for line := range strings.Lines(bed.raw.Do(ctx, "client", "list", "type", "pubsub").String()) {
		_, rest, _ := strings.Cut(line, "tot-mem=")
		digits, _, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(digits)
		sum += n
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(sum)/clients, "B/client")
	for _, s := range all {
		_ = s.Close()
	}
}
