package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// lossy is a network that carries no messages while it is deaf: the subscriptions stay, and
// nothing arrives on them.
func (s *embedded) lossy() (*redis.Client, *faultnet.Network) {
	n := s.network()
	return s.clientOver(n), n
}

// A call whose message is lost is found by a confirmation, and nobody else gets the lock
// meanwhile.
func TestLine_ALostCallIsFoundByAConfirmation(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		rdb, net := s.lossy()
		b, _ := manager(t, rdb, anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		got := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(time.Second)
		net.HalfOpen(faultnet.PubSub)
		start := time.Now()
		ok(t, h.Release(bg))
		h = <-got
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("found after %v", took)
		}
		if !h.Held() || s.holders("k")[0] != h.Holder() {
			t.Errorf("held: %v, in Redis %v", h.Held(), s.holders("k"))
		}
		ok(t, h.Release(bg))
		s.nothing(t, "k")
	})
}

// Those who died in front of a waiter cost it little more than a call lease each, also where Redis
// does not know that they are dead: the nearer a place is to the front, the sooner it is confirmed.
func TestLine_TheDeadInFrontCostACallLeaseEach(t *testing.T) {
	for dead, most := range map[int]time.Duration{1: 4 * time.Second, 2: 7 * time.Second, 5: 16 * time.Second} {
		t.Run(strconv.Itoa(dead), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				h := acquire(t, a.Mutex("k"))
				for i := 1; i <= dead; i++ { // with ears 1: nobody can know whether they hear
					s.HSet(lineOf("k"), "head", "1", "tail", strconv.Itoa(i), fmt.Sprint("cdead", i), strconv.Itoa(i),
						fmt.Sprint("p", i), fmt.Sprintf("dead%d:1700000000000000 1099511627776 30000 0 1 %d", i, time.Now().UnixMilli()))
				}
				got := s.waiting(t, bg, b.Mutex("k"))
				time.Sleep(time.Second)
				start := time.Now()
				ok(t, h.Release(bg))
				h = <-got
				if took := time.Since(start); took > most {
					t.Errorf("let in after %v, want %v at most", took, most)
				} else {
					t.Logf("let in after %v", took)
				}
				ok(t, h.Release(bg))
				s.nothing(t, "k")
			})
		})
	}
}

// A place that Redis has forgotten is taken anew, with a new field.
func TestLine_APlaceThatIsGoneIsTakenAnew(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		got := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(100 * time.Millisecond) // it has looked once, because it did not hear anything yet
		old := s.spots("k")[0]
		s.Del(lineOf("k"))
		time.Sleep(3 * time.Second) // a confirmation of the first in line
		synctest.Wait()
		spots := s.spots("k")
		if len(spots) != 1 || number(t, spots[0].field) <= number(t, old.field) {
			t.Fatalf("stood as %v, stands as %v", old, spots)
		}
		ok(t, h.Release(bg))
		ok(t, isIn(t, got).Release(bg))
		s.nothing(t, "k")
		anteroom.NothingWanted(t, b)
	})
}

// What Redis has forgotten altogether is taken without a script of the holder: nobody waits for
// the end of a lease that is not there.
func TestLine_AFlushIsFoundByAConfirmation(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, mutex(t, a, anteroom.LockConfig{Key: "k", LeaseTime: 5 * time.Minute}))
		got := s.waiting(t, bg, mutex(t, b, anteroom.LockConfig{Key: "k", LeaseTime: 5 * time.Minute}))
		s.FlushAll()
		start := time.Now()
		next := <-got
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("found after %v", took)
		}
		_ = h.Release(bg)
		ok(t, next.Release(bg))
		s.nothing(t, "k")
	})
}

// After the subscription was made anew all places are confirmed at once, so that a call of
// which the message was lost with the old one is found then, however far the next confirmation
// is.
func TestLine_AllPlacesAreConfirmedAfterAResubscription(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		rdb, net := s.lossy()
		sent := &traffic{}
		rdb.AddHook(sent)
		b, _ := manager(t, rdb, anteroom.Config{})
		const keys = 300
		var held []*anteroom.Hold
		var got []<-chan *anteroom.Hold
		for i := range keys {
			key := string(rune('A'+i/26)) + string(rune('a'+i%26))
			held = append(held, acquire(t, a.Mutex(key)))
			c := make(chan *anteroom.Hold, 1)
			got = append(got, c)
			go func() {
				h, _ := b.Mutex(key).Acquire(bg)
				c <- h
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		sent.take()
		net.Reset(faultnet.PubSub)
		start := time.Now()
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if n := sent.take(); n < 2 || n > 20 {
			t.Errorf("%d commands for %d places in %v, want a few batches", n, keys, time.Since(start))
		}
		for i := range keys {
			ok(t, held[i].Release(bg))
			ok(t, (<-got[i]).Release(bg))
		}
		anteroom.NothingWanted(t, b)
	})
}

// Who stands in line for a key that has become something else is told with its next confirmation.
func TestLine_AKeyThatIsNoLockAnyMoreIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		acquire(t, a.Mutex("k"))
		failed := make(chan error, 1)
		go func() {
			_, err := b.Mutex("k").Acquire(bg)
			failed <- err
		}()
		s.settle()
		time.Sleep(time.Second)
		s.Del("k")
		ok(t, s.Set("k", "something else"))
		start := time.Now()
		err := <-failed
		if took := time.Since(start); !errors.Is(err, anteroom.ErrConfig) || took > 1500*time.Millisecond {
			t.Errorf("%v after %v, want ErrConfig", err, took)
		}
	})
}

// listenElsewhere is a client whose subscriptions go through another network than its commands.
type listenElsewhere struct {
	*redis.Client
	sub *redis.Client
}

func (c listenElsewhere) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return c.sub.Subscribe(ctx, channels...)
}

// Whose subscription ends while it waits, and stays away, asks from then on: it is called and
// cannot hear.
func TestLine_WhoGoesDeafWhileItWaitsAsks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, listenElsewhere{s.client(), s.clientOver(net)}, anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		got := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(time.Second)
		net.Refuse()
		net.Reset(faultnet.PubSub)
		time.Sleep(2300 * time.Millisecond) // its place was confirmed since, and will be in some 700 ms
		start := time.Now()
		ok(t, h.Release(bg))
		h = <-got
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("let in after %v", took)
		}
		ok(t, h.Release(bg))
		s.nothing(t, "k")
	})
}
