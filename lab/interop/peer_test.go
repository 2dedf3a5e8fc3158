package interop

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A waiter of either side is woken by the other's release, and does not wait for a time to live.
func TestPeers_WakeUpBothWays(t *testing.T) {
	each(t, all, func(t *testing.T, p peer) {
		s, _ := single(t, p)
		wakeUpBothWays(t, s)
	})
}

func wakeUpBothWays(t *testing.T, s stage) {
	j := s.java()
	mu := lockOf(t, s.manager(), 30*time.Second)
	for range 3 {
		h := acquire(t, mu)
		got := j.begin("t", "lock", "k")
		time.Sleep(300 * time.Millisecond) // it subscribes
		released := time.Now()
		must(t, h.Release(bg))
		within(t, time.Second, j.wait(got, answerTime).at.Sub(released), "Go releases, Java has it")

		in := make(chan time.Time, 1)
		go func() {
			h, err := mu.Acquire(bg)
			in <- time.Now()
			if err == nil {
				err = h.Release(bg)
			}
			if err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(300 * time.Millisecond)
		before := time.Now()
		j.do("t", "unlock", "k")
		within(t, time.Second, (<-in).Sub(before), "Java unlocks, Go has it")
	}
}

// Each side may come again while it holds, and the other stays out until the last hold has ended.
func TestPeers_ReentrancyOnEachSide(t *testing.T) {
	each(t, all, func(t *testing.T, p peer) {
		s, _ := single(t, p)
		j := s.java()
		mu, err := s.manager().NewMutex(anteroom.LockConfig{Key: "k", Reentrant: true})
		must(t, err)
		for range 3 {
			j.do("t", "lock", "k")
		}
		for range 3 {
			if _, err := mu.TryAcquire(bg); err == nil {
				t.Fatal("Go is in beside Java")
			}
			j.do("t", "unlock", "k")
		}
		mu.Lock()
		mu.Lock()
		for range 2 {
			if a := j.do("t", "trylock", "k", 0); a.text != "false" {
				t.Fatal("Java is in beside Go")
			}
			mu.Unlock()
		}
		if a := j.do("t", "trylock", "k", 2000); a.text != "true" {
			t.Fatal("Java does not get a free lock")
		}
	})
}

// What a process held that was killed ends with its lease, and the other side has it then.
func TestPeers_AKilledHolderOfEachSide(t *testing.T) {
	const lease = 2 * time.Second
	each(t, all, func(t *testing.T, p peer) {
		s, _ := single(t, p)
		java1 := s.java(s.withLease(lease)...)
		mu := lockOf(t, s.manager(), lease)
		java1.do("t", "lock", "k")
		killed := time.Now()
		java1.kill()
		must(t, acquire(t, mu).Release(bg))
		within(t, lease+time.Second, time.Since(killed), "Java killed, Go has it")

		holder, err := child.Start(bg, holderRole, contention{URL: s.url, Dialect: p.dialect, Key: "k", For: lease}, time.Minute)
		must(t, err)
		var held string
		must(t, holder.Receive(&held, answerTime))
		java2 := s.java()
		got := java2.begin("t", "lock", "k")
		killed = time.Now()
		holder.Kill()
		within(t, lease+2*time.Second, java2.wait(got, answerTime).at.Sub(killed), "Go killed, Java has it")
	})
}

// A lease that nobody renews ends for both, and so does a lock that somebody deletes: the holder is notified,
// and the other side has it.
func TestPeers_ExpiryAndLossOnEachSide(t *testing.T) {
	const lease = time.Second
	each(t, all, func(t *testing.T, p peer) {
		s, redis := single(t, p)
		j := s.java(s.withLease(3 * lease)...)
		m := s.manager()
		j.do("t", "lockfor", "k", lease.Milliseconds())
		start := time.Now()
		fixed, err := m.NewMutex(anteroom.LockConfig{Key: "k", LeaseTime: lease, RenewalTime: -1})
		must(t, err)
		h := acquire(t, fixed)
		within(t, 2*lease, time.Since(start), "Java's lease ends, Go has it")
		if a := <-j.begin("t", "unlock", "k"); !a.failed {
			t.Error("Java unlocks what it has lost")
		}
		got := j.begin("u", "lock", "k")
		<-h.Context().Done()
		within(t, lease+time.Second, j.wait(got, answerTime).at.Sub(h.Since()), "Go's lease ends, Java has it")
		j.do("u", "unlock", "k")

		h = acquire(t, lockOf(t, m, 3*lease))
		deleted := time.Now()
		must(t, redis.Client(t).Del(bg, "k").Err())
		<-h.Context().Done()
		within(t, 6*time.Second, time.Since(deleted), "Go is told that its lock was deleted")
		j.do("t", "lock", "k")
		must(t, redis.Client(t).Del(bg, "k").Err())
		must(t, acquire(t, lockOf(t, m, 3*lease)).Release(bg))
		if a := <-j.begin("t", "unlock", "k"); !a.failed {
			t.Error("Java unlocks what was deleted")
		}
	})
}

// A holder of either side renews for three leases while the other waits.
func TestPeers_RenewalWhileTheOtherWaits(t *testing.T) {
	const lease = 1500 * time.Millisecond
	each(t, all, func(t *testing.T, p peer) {
		s, _ := single(t, p)
		j := s.java(s.withLease(lease)...)
		mu := lockOf(t, s.manager(), lease)
		j.do("t", "lock", "k")
		ctx, cancel := context.WithTimeout(bg, 3*lease)
		defer cancel()
		if h, err := mu.Acquire(ctx); err == nil {
			t.Fatalf("%v is in beside Java", h)
		}
		j.do("t", "unlock", "k")
		h := acquire(t, mu)
		if a := j.do("t", "trylock", "k", (3 * lease).Milliseconds()); a.text != "false" {
			t.Fatal("Java is in beside Go")
		}
		must(t, h.Release(bg))
	})
}

// fight is a contention of Go processes and as many Java processes.
type fight struct {
	programs, goroutines, threads int
	hold, pause                   time.Duration
	least                         float64 // part of either language
}

// A quarter is what each language is to get; a machine that is busy with something else gives less.
var fights = []fight{
	{programs: 4, goroutines: 2, threads: 2, hold: time.Millisecond, least: 0.2},
	{programs: 2, goroutines: 4, threads: 2, hold: time.Millisecond, least: 0.2},
	{programs: 1, goroutines: 1, threads: 1, pause: 5 * time.Millisecond, least: 0.2},
	{programs: 1, goroutines: 1, threads: 1, least: 0.1}, // both release and ask again in one breath: who hurries more has more
}

// Go processes and Java processes count on a counter that nothing but the lock protects. Each language gets its
// share where it does not hurry more than its threads can ask.
func TestPeers_ExclusionAndShares(t *testing.T) {
	each(t, all, func(t *testing.T, p peer) {
		for _, f := range fights {
			t.Run(f.String(), func(t *testing.T) {
				s, _ := single(t, p)
				f.try(t, s)
			})
		}
	})
}

func (f fight) String() string {
	return fmt.Sprintf("%dx%d and %dx%d, hold %v, pause %v", f.programs, f.goroutines, f.programs, f.threads, f.hold, f.pause)
}

func (f fight) try(t *testing.T, s stage) {
	const long = 6 * time.Second
	var javas []*java
	for range f.programs {
		javas = append(javas, s.java())
	}
	var warm []<-chan answer // before the fight: Java's first second is slow
	for _, j := range javas {
		warm = append(warm, j.begin("warm", "contend", "warm", "warmed", 0, 0, 700))
	}
	for i, got := range warm {
		javas[i].wait(got, answerTime)
	}
	var gos []*child.Process
	for range f.programs {
		plan := contention{URL: s.url, Dialect: s.peer.dialect, Key: "k", Counter: "n", Goroutines: f.goroutines, Hold: f.hold, Pause: f.pause, For: long}
		p, err := child.Start(bg, contenderRole, plan, time.Minute)
		must(t, err)
		defer p.Kill()
		gos = append(gos, p)
	}
	var waiting []<-chan answer
	for _, j := range javas {
		for i := range f.threads {
			waiting = append(waiting, j.begin(fmt.Sprint("t", i), "contend", "k", "n",
				f.hold.Microseconds(), f.pause.Microseconds(), long.Milliseconds()))
		}
	}
	var ofGo, ofJava takes
	for i, got := range waiting {
		words := strings.Fields(javas[i/f.threads].wait(got, 2*answerTime).text)
		n, _ := strconv.Atoi(words[0])
		us, _ := strconv.Atoi(words[1])
		ofJava = ofJava.plus(takes{n, time.Duration(us) * time.Microsecond})
	}
	for _, p := range gos {
		var goroutines []takes
		must(t, p.Receive(&goroutines, answerTime))
		for _, one := range goroutines {
			ofGo = ofGo.plus(one)
		}
	}
	n, err := s.client().Get(bg, "n").Int()
	must(t, err)
	if n != ofGo.Count+ofJava.Count {
		t.Errorf("the counter is %d after %d and %d acquisitions", n, ofGo.Count, ofJava.Count)
	}
	part := float64(ofJava.Count) / float64(n)
	t.Logf("Go %d (longest wait %v), Java %d (longest wait %v): %.0f %% Java's",
		ofGo.Count, ofGo.Longest.Round(time.Millisecond), ofJava.Count, ofJava.Longest.Round(time.Millisecond), 100*part)
	if min(part, 1-part) < f.least/pace.Factor() {
		t.Errorf("%.0f %% are Java's", 100*part)
	}
}
