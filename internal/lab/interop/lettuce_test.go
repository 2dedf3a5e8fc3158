package interop

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// lettuce is the environment variable for the jar of interop/lettuce, the design document's lock in Java.
const lettuce = "ANTEROOM_LETTUCE"

var bg = context.Background()

// manager returns a Manager on the server that is closed with the test.
func manager(t *testing.T, s *testredis.Server) *anteroom.Manager {
	t.Helper()
	m, err := anteroom.Open(bg, s.URL(), anteroom.Config{})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close(bg)) })
	return m
}

// lockOf returns the lock k with that lease.
func lockOf(t *testing.T, m *anteroom.Manager, lease time.Duration) *anteroom.Mutex {
	t.Helper()
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "k", LeaseTime: lease})
	must(t, err)
	return mu
}

func acquire(t *testing.T, mu *anteroom.Mutex) *anteroom.Hold {
	t.Helper()
	h, err := mu.Acquire(bg)
	must(t, err)
	return h
}

// within fails where what took longer than bound, and prints how long it took.
func within(t *testing.T, bound, took time.Duration, what string) {
	t.Helper()
	t.Logf("%s: %v", what, took.Round(100*time.Microsecond))
	if took > bound {
		t.Errorf("%s took %v, more than %v", what, took, bound)
	}
}

// A waiter of either side is woken by the other's release, and does not wait for a time to live.
func TestLettuce_WakeUpBothWays(t *testing.T) {
	s := testredis.Start(t)
	j := startJava(t, lettuce, s.URL(), "--poll", "20000")
	mu := lockOf(t, manager(t, s), 30*time.Second)
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
func TestLettuce_ReentrancyOnEachSide(t *testing.T) {
	s := testredis.Start(t)
	j := startJava(t, lettuce, s.URL())
	m := manager(t, s)
	mu := m.Mutex("k")
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
}

// What a process held that was killed ends with its lease, and the other side has it then.
func TestLettuce_AKilledHolderOfEachSide(t *testing.T) {
	const lease = 2 * time.Second
	s := testredis.Start(t)
	java1 := startJava(t, lettuce, s.URL(), "--lease", "2000")
	mu := lockOf(t, manager(t, s), lease)
	java1.do("t", "lock", "k")
	killed := time.Now()
	java1.kill()
	must(t, acquire(t, mu).Release(bg))
	within(t, lease+time.Second, time.Since(killed), "Java killed, Go has it")

	holder, err := child.Start(bg, holderRole, contention{URL: s.URL(), Key: "k", For: lease}, time.Minute)
	must(t, err)
	var held string
	must(t, holder.Receive(&held, answerTime))
	java2 := startJava(t, lettuce, s.URL())
	got := java2.begin("t", "lock", "k")
	killed = time.Now()
	holder.Kill()
	within(t, lease+2*time.Second, java2.wait(got, answerTime).at.Sub(killed), "Go killed, Java has it")
}

// A holder of either side renews for three leases while the other waits.
func TestLettuce_RenewalWhileTheOtherWaits(t *testing.T) {
	const lease = 1500 * time.Millisecond
	s := testredis.Start(t)
	j := startJava(t, lettuce, s.URL(), "--lease", "1500")
	mu := lockOf(t, manager(t, s), lease)
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
}

// Go processes and Java processes count on a counter that nothing but the lock protects. Each language gets its
// share: a quarter at least, where it does not hurry more than its threads can ask.
func TestLettuce_ExclusionAndSharesUnderContention(t *testing.T) {
	const long = 6 * time.Second
	for _, c := range []struct {
		programs, goroutines, threads int
		hold, pause                   time.Duration
		least                         float64 // part of either language
	}{
		{programs: 4, goroutines: 2, threads: 2, hold: time.Millisecond, least: 0.25},
		{programs: 2, goroutines: 4, threads: 2, hold: time.Millisecond, least: 0.25},
		{programs: 1, goroutines: 1, threads: 1, pause: 5 * time.Millisecond, least: 0.25},
		{programs: 1, goroutines: 1, threads: 1}, // Java releases and asks again in one breath
	} {
		t.Run(fmt.Sprintf("%dx%d and %dx%d, hold %v, pause %v", c.programs, c.goroutines, c.programs, c.threads, c.hold, c.pause), func(t *testing.T) {
			s := testredis.Start(t)
			var javas []*java
			for range c.programs {
				javas = append(javas, startJava(t, lettuce, s.URL()))
			}
			var gos []*child.Process
			for range c.programs {
				plan := contention{URL: s.URL(), Key: "k", Counter: "n", Goroutines: c.goroutines, Hold: c.hold, Pause: c.pause, For: long}
				p, err := child.Start(bg, contenderRole, plan, time.Minute)
				must(t, err)
				defer p.Kill()
				gos = append(gos, p)
			}
			var waiting []<-chan answer
			for _, j := range javas {
				for i := range c.threads {
					waiting = append(waiting, j.begin(fmt.Sprint("t", i), "contend", "k", "n",
						c.hold.Microseconds(), c.pause.Microseconds(), long.Milliseconds()))
				}
			}
			var ofGo, ofJava takes
			for i, got := range waiting {
				words := strings.Fields(javas[i/c.threads].wait(got, 2*answerTime).text)
				n, _ := strconv.Atoi(words[0])
				us, _ := strconv.Atoi(words[1])
				ofJava = ofJava.plus(takes{n, time.Duration(us) * time.Microsecond})
			}
			for _, p := range gos {
				var one takes
				must(t, p.Receive(&one, answerTime))
				ofGo = ofGo.plus(one)
			}
			n, err := s.Client(t).Get(bg, "n").Int()
			must(t, err)
			if n != ofGo.Count+ofJava.Count {
				t.Errorf("the counter is %d after %d and %d acquisitions", n, ofGo.Count, ofJava.Count)
			}
			part := float64(ofJava.Count) / float64(n)
			t.Logf("Go %d (longest wait %v), Java %d (longest wait %v): %.0f %% Java's",
				ofGo.Count, ofGo.Longest.Round(time.Millisecond), ofJava.Count, ofJava.Longest.Round(time.Millisecond), 100*part)
			if min(part, 1-part) < c.least {
				t.Errorf("%.0f %% are Java's", 100*part)
			}
		})
	}
}
