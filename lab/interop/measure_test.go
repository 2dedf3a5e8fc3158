package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// TestMeasure prints the tables of docs/generated/redisson.md: make interop-measure. Each side has a
// Redis of its own, and they take turns, three times.
func TestMeasure(t *testing.T) {
	if os.Getenv("ANTEROOM_MEASURE") == "" {
		t.Skip("make interop-measure")
	}
	t.Run("one key", oneKey)
	t.Run("hand-over", handOver)
	t.Run("many held", manyHeld)
}

const (
	anteroomSide = "Anteroom"
	rounds       = 3
	// warm is how long Java does the same first, until it is compiled. Go gets no such time.
	warm = 12 * time.Second
)

var sides = []string{anteroomSide, "RLock", "RFairLock"}

// kindOf is the option of a Java program for a side.
func kindOf(side string) []string {
	if side == "RFairLock" {
		return []string{"--kind", "fair"}
	}
	return nil
}

// spread is the median of some figures, with the least and the most.
func spread(all []float64, digits int) string {
	slices.Sort(all)
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	return fmt.Sprintf("%s (%s to %s)", f(all[len(all)/2]), f(all[0]), f(all[len(all)-1]))
}

// stat reads one figure of INFO.
func stat(rdb *redis.Client, section, name string) float64 {
	_, line, _ := strings.Cut(rdb.Info(bg, section).Val(), name)
	line, _, _ = strings.Cut(line, "\r\n")
	line, _, _ = strings.Cut(line, ",")
	f, _ := strconv.ParseFloat(line, 64)
	return f
}

// oneKey: processes × waiters want one key all the time.
func oneKey(t *testing.T) {
	fmt.Println("\n| processes × waiters | side | acquisitions/s | scripts per acquisition | most to least of a waiter | longest wait, ms |\n|---|---|---|---|---|---|")
	for _, shape := range [][2]int{{1, 8}, {4, 2}, {8, 1}} {
		p := newest
		if shape[0] == 1 {
			p.jvm = nil // a compiler that optimizes pays off here; of several, each takes processors from the others
		}
		var all []*contest
		for _, side := range sides {
			s, server := single(t, p)
			c := &contest{stage: s, side: side, rdb: server.Client(t), programs: shape[0], waiters: shape[1]}
			if side != anteroomSide {
				for range shape[0] {
					c.javas = append(c.javas, s.java(kindOf(side)...))
				}
				c.inJava(warm)
			}
			all = append(all, c)
		}
		for range rounds {
			for _, c := range all {
				c.round()
			}
		}
		for _, c := range all {
			f := c.figures
			fmt.Printf("| %d × %d | %s | %s | %s | %s | %s |\n", shape[0], shape[1], c.side, spread(f[0], 0), spread(f[1], 2), spread(f[2], 1), spread(f[3], 0))
			for _, j := range c.javas {
				j.kill()
			}
		}
	}
}

// contest is one side's programs on a Redis of their own.
type contest struct {
	stage
	side              string
	rdb               *redis.Client
	programs, waiters int
	javas             []*java
	figures           [4][]float64
}

// round measures once.
func (c *contest) round() {
	const long = 4 * time.Second
	must(c.t, c.rdb.ConfigResetStat(bg).Err())
	var each []takes
	if c.side == anteroomSide {
		each = c.inGo(long)
	} else {
		each = c.inJava(long)
	}
	var sum takes
	least, most := each[0].Count, 0
	for _, one := range each {
		sum = sum.plus(one)
		least, most = min(least, one.Count), max(most, one.Count)
	}
	for i, f := range []float64{
		float64(sum.Count) / long.Seconds(),
		stat(c.rdb, "commandstats", "cmdstat_evalsha:calls=") / float64(sum.Count),
		float64(most) / float64(max(least, 1)),
		float64(sum.Longest.Milliseconds()),
	} {
		c.figures[i] = append(c.figures[i], f)
	}
}

// inJava is what comes of each waiter.
func (c *contest) inJava(long time.Duration) (each []takes) {
	var waiting []<-chan answer
	for _, j := range c.javas {
		for i := range c.waiters {
			waiting = append(waiting, j.begin(fmt.Sprint("t", i), "contend", "k", "n", 0, 0, long.Milliseconds()))
		}
	}
	for i, got := range waiting {
		words := strings.Fields(c.javas[i/c.waiters].wait(got, 2*answerTime).text)
		n, _ := strconv.Atoi(words[0])
		us, _ := strconv.Atoi(words[1])
		each = append(each, takes{n, time.Duration(us) * time.Microsecond})
	}
	return each
}

func (c *contest) inGo(long time.Duration) (each []takes) {
	var gos []*child.Process
	for range c.programs {
		plan := contention{URL: c.url, Dialect: c.peer.dialect, Key: "k", Counter: "n", Goroutines: c.waiters, For: long}
		p, err := child.Start(bg, contenderRole, plan, time.Minute)
		must(c.t, err)
		defer p.Kill()
		gos = append(gos, p)
	}
	for _, p := range gos {
		var some []takes
		must(c.t, p.Receive(&some, answerTime))
		each = append(each, some...)
	}
	return each
}

// handOver: how long after the call that releases it the waiter of another process has a lock.
func handOver(t *testing.T) {
	const times = 100
	fmt.Println("\n| side | hand-over, µs: median | 90 % |\n|---|---|---|")
	row := func(side string, all []float64) {
		slices.Sort(all)
		fmt.Printf("| %s | %.0f | %.0f |\n", side, all[len(all)/2], all[len(all)*9/10])
	}
	s, _ := single(t, newest)
	a, b := s.manager().Mutex("g"), s.manager().Mutex("g")
	var all []float64
	for range times {
		h := acquire(t, a)
		in := make(chan time.Time, 1)
		go func() {
			h, err := b.Acquire(bg)
			in <- time.Now()
			if err == nil {
				_ = h.Release(bg)
			}
		}()
		time.Sleep(20 * time.Millisecond) // it waits
		start := time.Now()
		must(t, h.Release(bg))
		all = append(all, float64((<-in).Sub(start).Microseconds()))
	}
	row(anteroomSide, all)
	for _, side := range sides[1:] {
		j1, j2 := s.java(kindOf(side)...), s.java(kindOf(side)...)
		one, other := j1.begin("t", "contend", "w", "n", 0, 0, warm.Milliseconds()), j2.begin("t", "contend", "w", "n", 0, 0, warm.Milliseconds())
		j1.wait(one, answerTime)
		j2.wait(other, answerTime)
		all = nil
		for range times {
			j1.do("t", "lock", side)
			got := j2.begin("t", "lock", side)
			time.Sleep(20 * time.Millisecond)
			start := time.Now()
			released := j1.begin("t", "unlock", side)
			all = append(all, float64(j2.wait(got, answerTime).at.Sub(start).Microseconds()))
			j1.wait(released, answerTime)
			j2.do("t", "unlock", side)
		}
		row(side, all)
		all = nil
		for range times {
			start := time.Now()
			all = append(all, float64(j1.do("t", "threadid").at.Sub(start).Microseconds()))
		}
		row("of which the way to the Java program, "+side, all)
		j1.kill()
		j2.kill()
	}
}

// heavyRole is a Go program that holds many locks until it is killed.
const heavyRole = "interop-heavy"

func heavy(ctx context.Context, parent *child.Link, raw json.RawMessage) error {
	var c contention
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	m, err := anteroom.Open(ctx, c.URL, anteroom.Config{Dialect: anteroom.Dialect(c.Dialect), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for i := range c.Goroutines {
		if _, err := m.Mutex(fmt.Sprint(c.Key, i)).Acquire(ctx); err != nil {
			return err
		}
	}
	if err := parent.Send("held"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// manyHeld: what it costs to hold 10,000 locks.
func manyHeld(t *testing.T) {
	const many, long = 10_000, 30 * time.Second
	fmt.Printf("\n| %d locks held | %% of a processor | commands/s in Redis | resident memory, MB |\n|---|---|---|---|\n", many)
	watch := func(side string, pid int, server *testredis.Server) {
		rdb := server.Client(t)
		time.Sleep(5 * time.Second) // what acquiring has left behind
		var figures [2][]float64
		for range rounds {
			cpu, commands := processor(t, pid), stat(rdb, "stats", "total_commands_processed:")
			time.Sleep(long)
			figures[0] = append(figures[0], 100*(processor(t, pid)-cpu).Seconds()/long.Seconds())
			figures[1] = append(figures[1], (stat(rdb, "stats", "total_commands_processed:")-commands)/long.Seconds())
		}
		fmt.Printf("| %s | %s | %s | %d |\n", side, spread(figures[0], 2), spread(figures[1], 0), resident(t, pid)>>20)
	}
	s, server := single(t, newest)
	p, err := child.Start(bg, heavyRole, contention{URL: s.url, Dialect: newest.dialect, Key: "g", Goroutines: many}, 10*time.Minute)
	must(t, err)
	defer p.Kill()
	var held string
	must(t, p.Receive(&held, 2*answerTime))
	watch(anteroomSide, p.Pid(), server)
	p.Kill()
	s, server = single(t, newest)
	j := s.java()
	j.wait(j.begin("t", "holdmany", "j", many), 2*time.Minute)
	watch("RLock", j.cmd.Process.Pid, server)
}

// processor is the time that a process has used of processors.
func processor(t *testing.T, pid int) time.Duration {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	words := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+2:]))
	user, _ := strconv.Atoi(words[11])
	system, _ := strconv.Atoi(words[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident is how much of memory a process has.
func resident(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	must(t, err)
	pages, _ := strconv.Atoi(strings.Fields(string(raw))[1])
	return pages * os.Getpagesize()
}
