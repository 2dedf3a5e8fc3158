package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// idleSubscription subscribes to a channel, and does nothing with what comes, until end.
func (s *embedded) idleSubscription(channel string) (end func()) {
	ps := s.client().Subscribe(bg, channel)
	go func() {
		for {
			if _, err := ps.Receive(bg); err != nil {
				return
			}
		}
	}()
	return func() { _ = ps.Close() }
}

// A call whose message is lost is found by a confirmation, and nobody else gets the lock
// meanwhile.
func TestLine_ALostCallIsFoundByAConfirmation(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		b, _ := manager(t, s.clientOver(net), anteroom.Config{})
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
				for i := range dead { // Redis has their connections still
					client := "dead" + strconv.Itoa(i)
					defer s.idleSubscription("anteroom:client:" + client)()
					s.addPlace(client, 30*time.Second)
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

// Those who have died are passed without a delay where Redis can know it: they have no subscription any more, or have not
// confirmed their places in time.
func TestLine_TheDeadThatRedisKnowsCostNothing(t *testing.T) {
	for _, alive := range []time.Duration{30 * time.Second, -time.Millisecond} {
		bubble(t, func(t *testing.T, s *embedded) {
			a, _ := manager(t, s.client(), anteroom.Config{})
			b, _ := manager(t, s.client(), anteroom.Config{})
			h := acquire(t, a.Mutex("k"))
			for i := range 5 {
				s.addPlace("dead"+strconv.Itoa(i), alive)
			}
			got := s.waiting(t, bg, b.Mutex("k"))
			time.Sleep(100 * time.Millisecond)
			ok(t, h.Release(bg))
			s.settle()
			h = isIn(t, got)
			if spots := s.spots("k"); alive < 0 && len(spots) != 0 {
				t.Errorf("places: %v", spots)
			}
			ok(t, h.Release(bg))
			time.Sleep(30 * time.Second) // a place that its client may come back to has its time
			ok(t, acquire(t, b.Mutex("k")).Release(bg))
			s.nothing(t, "k")
		})
	}
}

// A place is confirmed for as long as its waiters wait, well within its life, and the less often the further it is from
// the front.
func TestLine_APlaceIsConfirmedInItsRhythm(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		var sent []*traffic
		var got []<-chan *anteroom.Hold
		for range 6 {
			rdb, c := s.client(), &traffic{}
			rdb.AddHook(c)
			m, _ := manager(t, rdb, anteroom.Config{})
			sent = append(sent, c)
			got = append(got, s.waiting(t, bg, m.Mutex("k")))
		}
		time.Sleep(10 * time.Second)
		for _, c := range sent {
			c.take()
		}
		before := s.spots("k")
		for range 60 {
			time.Sleep(time.Second)
			for _, p := range s.spots("k") {
				words := strings.Fields(s.HGet(lineOf("k"), fmt.Sprint("p", p.seq)))
				if alive, _ := strconv.ParseInt(words[3], 10, 64); alive < time.Now().Add(15*time.Second).UnixMilli() {
					t.Fatalf("%v is dead in %v", p, time.Until(time.UnixMilli(alive)))
				}
			}
		}
		for i, c := range sent {
			want := 60 / max(i, 1)
			if n := c.take(); n < want-1 || n > want+7 { // beside those the first two retry at the end of the holder's lease
				t.Errorf("number %d has sent %d commands in a minute, want about %d", i, n, want)
			}
		}
		if now := s.spots("k"); len(now) != len(before) || now[0].client != before[0].client || now[5].client != before[5].client {
			t.Errorf("%v, then %v", before, now)
		}
		for _, c := range got {
			ok(t, h.Release(bg))
			s.settle()
			h = isIn(t, c)
		}
		ok(t, h.Release(bg))
		s.nothing(t, "k")
	})
}

// A place that Redis has forgotten is taken anew.
func TestLine_APlaceThatIsGoneIsTakenAnew(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		got := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(100 * time.Millisecond) // it has asked once, because it did not hear anything yet
		old := s.spots("k")[0]
		s.Del(lineOf("k"))
		time.Sleep(3 * time.Second) // a confirmation of the first in line
		synctest.Wait()
		if spots := s.spots("k"); len(spots) != 1 || spots[0].n <= old.n {
			t.Fatalf("had place %v, has %v", old, spots)
		}
		ok(t, h.Release(bg))
		ok(t, isIn(t, got).Release(bg))
		s.nothing(t, "k")
		anteroom.NothingLeft(t, b)
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

// After the subscription was made anew all places are confirmed immediately, so that a call of which the message was
// lost with the old one is found then, however far the next confirmation is.
func TestLine_AllPlacesAreConfirmedAfterAResubscription(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		rdb, sent := s.clientOver(net), &traffic{}
		rdb.AddHook(sent)
		b, _ := manager(t, rdb, anteroom.Config{})
		const keys = 60
		name := func(i int) string { return "k" + strconv.Itoa(i) }
		var held []*anteroom.Hold
		got := make([]chan *anteroom.Hold, keys)
		for i := range keys {
			held = append(held, acquire(t, a.Mutex(name(i))))
			got[i] = make(chan *anteroom.Hold, 1)
			go func() { got[i] <- acquire(t, b.Mutex(name(i))) }()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		before := map[int]uint64{}
		for i := range keys {
			before[i] = s.spots(name(i))[0].n
		}
		sent.take()
		net.Reset(faultnet.PubSub)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if n := sent.take(); n > 2*keys {
			t.Errorf("%d commands for %d places", n, keys)
		}
		for i := range keys {
			if s.spots(name(i))[0].n == before[i] {
				t.Fatalf("the place for %s was not confirmed", name(i))
			}
		}
		for i := range keys {
			ok(t, held[i].Release(bg))
			ok(t, (<-got[i]).Release(bg))
		}
		anteroom.NothingLeft(t, b)
	})
}

// Who waits in line for a key that has become something else learns it with its next confirmation.
func TestLine_AKeyThatIsNoLockAnyMoreIsReported(t *testing.T) {
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

// A client whose subscription ends while it waits, and does not come back, asks from then on: it is called and
// cannot hear.
func TestLine_AnUnsubscribedWaiterAsks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, listenElsewhere{s.client(), s.clientOver(net)}, anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		got := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(time.Second)
		net.Refuse()
		net.Reset(faultnet.PubSub)
		time.Sleep(2300 * time.Millisecond) // its place was confirmed since, and will be in about 700 ms
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
