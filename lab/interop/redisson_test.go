package interop

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Whoever breaks a lock of the other side is heard: Redisson's forceUnlock by the Go holder within one period
// of the watchdog and one command, ours by Java when it looks; and the waiters of both sides are woken.
func TestRedisson_ForceUnlock(t *testing.T) {
	const period = 500 * time.Millisecond
	each(t, redissons, func(t *testing.T, p peer) {
		s, _ := single(t, p)
		j, m := s.java(), s.manager()
		mu, err := m.NewMutex(anteroom.LockConfig{Key: "k", WatchdogPeriod: period})
		must(t, err)
		for range 3 {
			h := acquire(t, mu)
			waiting := j.begin("t", "lock", "k")
			time.Sleep(300 * time.Millisecond) // it subscribes
			forced := time.Now()
			if a := j.do("u", "force", "k"); a.text != "true" {
				t.Fatal(a.text)
			}
			within(t, time.Second, j.wait(waiting, answerTime).at.Sub(forced), "Java's waiter has the lock")
			<-h.Context().Done()
			within(t, period+time.Second, time.Since(forced), "forceUnlock is told to the Go holder")
			if broken, err := m.ForceRelease(bg, "k"); err != nil || len(broken) != 1 {
				t.Fatal(broken, err)
			}
			if a := j.do("t", "held", "k"); a.text != "false" {
				t.Error("Java believes that it holds a lock that was broken")
			}
		}
	})
}

// Tokens of both languages grow strictly, in the order of the acquisitions.
func TestRedisson_TokensGrowAcrossBoth(t *testing.T) {
	each(t, redissons, func(t *testing.T, p peer) {
		s, server := single(t, p)
		j := s.java("--kind", "fenced")
		mu, err := s.manager().NewMutex(anteroom.LockConfig{Key: "k", Fencing: true})
		must(t, err)
		var tokens []int64 // guarded by the lock
		count := map[string]int{}
		took := func(who string, token int64) {
			tokens = append(tokens, token)
			count[who]++
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 40 {
					h, err := mu.Acquire(bg)
					if err != nil {
						t.Error(err)
						return
					}
					token, _ := h.Token()
					took("Go", token)
					if err := h.Release(bg); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for _, thread := range []string{"t", "u"} {
			wg.Go(func() {
				for range 40 {
					a := j.wait(j.begin(thread, "token", "k"), 4*answerTime)
					token, err := strconv.ParseInt(a.text, 10, 64)
					if err != nil {
						t.Error(a.text)
						return
					}
					took("Java", token)
					j.wait(j.begin(thread, "unlock", "k"), 4*answerTime)
				}
			})
		}
		wg.Wait()
		for i := 1; i < len(tokens); i++ {
			if tokens[i] <= tokens[i-1] {
				t.Fatalf("token %d after %d", tokens[i], tokens[i-1])
			}
		}
		if count["Go"] != 80 || count["Java"] != 80 {
			t.Errorf("%v", count)
		}
		last, err := server.Client(t).Get(bg, "redisson_lock_token:{k}").Int64()
		must(t, err)
		t.Logf("160 acquisitions, tokens %d to %d, the counter is %d", tokens[0], tokens[len(tokens)-1], last)
	})
}

// On a Cluster both listen to the channel of the lock's shard, wake each other and share the lock.
func TestRedisson_Cluster(t *testing.T) {
	each(t, redissons, func(t *testing.T, p peer) {
		nodes := testredis.StartCluster(t, 3, 0)
		s := stage{t, p, nodes.URL()}
		t.Run("both listen to the shard", func(t *testing.T) {
			s.t = t
			j, mu := s.java(), s.manager().Mutex("k")
			node := nodes.Master(nodes.Slot("k")).Client(t)
			subscribers := func() int64 {
				return node.PubSubShardNumSub(bg, "redisson_lock__channel:{k}").Val()["redisson_lock__channel:{k}"]
			}
			h := acquire(t, mu)
			waiting := j.begin("t", "lock", "k")
			eventually(t, "Java listens to the shard", func() bool { return subscribers() == 1 })
			must(t, h.Release(bg))
			j.wait(waiting, answerTime)
			eventually(t, "Java listens no more", func() bool { return subscribers() == 0 })
			in := pass(mu)
			eventually(t, "Go listens to the shard", func() bool { return subscribers() == 1 })
			j.do("t", "unlock", "k")
			must(t, <-in)
		})
		t.Run("wake-up", func(t *testing.T) {
			s.t = t
			wakeUpBothWays(t, s)
		})
		t.Run(fights[0].String(), func(t *testing.T) {
			s.t = t
			fights[0].try(t, s)
		})
	})
}

// Behind Sentinels both share a lock, and continue after a failover.
func TestRedisson_Sentinel(t *testing.T) {
	each(t, redissons, func(t *testing.T, p peer) {
		nodes := testredis.StartSentinel(t)
		s := stage{t, p, nodes.URL()}
		t.Run(fights[0].String(), func(t *testing.T) {
			s.t = t
			fights[0].try(t, s)
		})
		t.Run("failover", func(t *testing.T) {
			s.t = t
			j, mu := s.java(), s.manager().Mutex("k")
			must(t, acquire(t, mu).Release(bg))
			j.do("t", "lock", "k")
			j.do("t", "unlock", "k")
			old := nodes.Master()
			old.Kill()
			now := nodes.AwaitMaster(old)
			must(t, acquire(t, mu).Release(bg))
			// On a busy machine two Sentinels may each elect a master, one after the other. A lock on the first is lost then, by
			// either library, so the rest is tried where the second has come.
			stays := time.NewTimer(3 * time.Second)
			for stable := false; !stable; {
				select {
				case <-stays.C:
					stable = true
				case <-time.After(50 * time.Millisecond):
					if m := nodes.Master(); m != nil && m != now {
						t.Log("the Sentinels have elected another master")
						now = m
						stays.Reset(3 * time.Second)
					}
				}
			}
			must(t, acquire(t, mu).Release(bg))
			eventually(t, "Java gets the lock from the new master", func() bool {
				a := j.wait(j.begin("t", "trylock", "k", 500), 2*answerTime)
				return !a.failed && a.text == "true"
			})
			if n := now.Client(t).HLen(bg, "k").Val(); n != 1 {
				t.Errorf("%d holders at the new master", n)
			}
			in := pass(mu)
			time.Sleep(300 * time.Millisecond)
			before := time.Now()
			j.do("t", "unlock", "k")
			must(t, <-in)
			within(t, 2*time.Second, time.Since(before), "after a failover: Java unlocks, Go has it")
		})
	})
}

// Readers and writers, and permits, beside Redisson's own: four of its programs, then four Managers of this one, each with
// four threads.
func TestRedisson_SharedLocksSideBySide(t *testing.T) {
	const programs, threads, hold, span = 4, 4, time.Millisecond, 3 * time.Second
	type outcome struct {
		acquisitions int
		waits        []time.Duration // for writes, or for permits
	}
	show := func(who string, o outcome) (rate float64, p99 time.Duration) {
		slices.Sort(o.waits)
		rate, p99 = float64(o.acquisitions)/span.Seconds(), o.waits[len(o.waits)*99/100]
		t.Logf("%s: %.0f acquisitions/s, waits p50 %v, p99 %v", who, rate, o.waits[len(o.waits)/2], p99)
		return rate, p99
	}
	for _, c := range []struct {
		name  string
		reads int
	}{{"95 of 100 read", 95}, {"8 permits", 0}} {
		t.Run(c.name, func(t *testing.T) {
			each(t, redissons[:1], func(t *testing.T, p peer) {
				s, _ := single(t, p)
				var theirs, ours outcome
				var javas []*java
				var begun []<-chan answer
				for range programs {
					javas = append(javas, s.java())
				}
				for _, j := range javas {
					for i := range threads {
						begun = append(begun, j.begin(strconv.Itoa(i), "share", "theirs", c.reads, hold.Microseconds(), span.Milliseconds()))
					}
				}
				for i, a := range begun {
					words := strings.Fields(javas[i/threads].wait(a, span+answerTime).text)
					for _, w := range words[1:] {
						us, err := strconv.Atoi(w)
						must(t, err)
						theirs.waits = append(theirs.waits, time.Duration(us)*time.Microsecond)
					}
					n, err := strconv.Atoi(words[0])
					must(t, err)
					theirs.acquisitions += n
				}
				var mu sync.Mutex
				var all sync.WaitGroup
				for range programs {
					m := (stage{t, lettuce, s.url}).manager() // in Redisson's dialect there are no shared locks
					rw, permits := m.RWMutex("ours"), m.Semaphore("ours:permits", 8).Weighted()
					for range threads {
						all.Go(func() {
							for end := time.Now().Add(span); time.Now().Before(end); {
								write := rand.N(100) >= c.reads
								start, release := time.Now(), func() { permits.Release(1) }
								switch {
								case c.reads == 0:
									_ = permits.Acquire(bg, 1) // without an end to wait for
								case write:
									rw.Lock()
									release = rw.Unlock
								default:
									rw.RLock()
									release = rw.RUnlock
								}
								waited := time.Since(start)
								time.Sleep(hold)
								release()
								mu.Lock()
								ours.acquisitions++
								if write {
									ours.waits = append(ours.waits, waited)
								}
								mu.Unlock()
							}
						})
					}
				}
				all.Wait()
				rate, p99 := show("Anteroom", ours)
				theirRate, theirP99 := show("Redisson", theirs)
				if rate < theirRate || p99 > theirP99 {
					t.Error("Redisson is better")
				}
			})
		})
	}
}
