package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

const writes = lettucecompat.AllUnits

// newShares returns a client of shared locks. capacity 0: of RWMutexes.
func newShares(t testing.TB, rdb *redis.Client, capacity int64, change func(*Settings)) *party {
	t.Helper()
	return newParty(t, rdb, func(s *Settings) {
		s.Shared, s.Capacity, s.MaxHandoffTime = true, capacity, time.Millisecond
		if change != nil {
			change(s)
		}
	})
}

// withUnits makes o one of units.
func withUnits(o *Owner) *Owner {
	o.Shares(new(Share))
	return o
}

func (p *party) take(ctx context.Context, units int64, kind queue.Kind) (*Owner, error) {
	k := p.Key("k", p.set)
	defer k.Done()
	s := withUnits(&Owner{Stay: queue.Stay{Need: int32(units), Kind: kind | queue.Refusable}, Holder: notify(func(*Loss) {})})
	return s, k.Acquire(ctx, s, nil)
}

func (p *party) mustTake(t testing.TB, units int64) *Owner {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
	defer cancel()
	s, err := p.take(ctx, units, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// awaitTurnOver waits until another client waits for the units of k, and their turn is over.
func awaitTurnOver(t testing.TB, k *Key) {
	t.Helper()
	eventually(t, "the turn is over", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.contendedLocked() && k.q.Demand().Over
	})
}

func mustGive(t testing.TB, s *Owner) {
	t.Helper()
	if r := s.Exit(context.Background()); r.Lost != nil || r.Err != nil || r.Stale {
		t.Errorf("release: %+v", r)
	}
}

func tryTake(t testing.TB, p *party, units int64) bool {
	t.Helper()
	s, err := p.take(context.Background(), units, queue.Try)
	if err == nil {
		mustGive(t, s)
	} else if !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	return err == nil
}

// Redis has nothing of the shared key, and the process keeps nothing.
func assertGone(t testing.TB, rdb *redis.Client, ps ...*party) {
	t.Helper()
	eventually(t, "nothing is left", func() bool {
		n := rdb.Exists(context.Background(), "k", "anteroom:line:{k}").Val()
		for _, p := range ps {
			n += int64(len(p.All()))
		}
		return n == 0
	})
}

func TestShared_ReadersAreInTogetherAndAWriterAlone(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := newShares(t, client(), 0, nil), newShares(t, client(), 0, nil)
	r1, r2 := a.mustTake(t, 1), b.mustTake(t, 1)
	if tryTake(t, a, writes) || tryTake(t, b, writes) {
		t.Error("a writer beside readers")
	}
	mustGive(t, r1)
	mustGive(t, r2)
	w := a.mustTake(t, writes)
	if tryTake(t, a, 1) || tryTake(t, b, 1) {
		t.Error("a reader beside a writer")
	}
	mustGive(t, w)
	if r := b.mustTake(t, 1); r.Err() != nil {
		t.Error(r.Err())
	} else {
		mustGive(t, r)
	}
	assertGone(t, client(), a, b)
}

// Processes with several goroutines read and write, or share permits: what is inside together is never too much,
// everybody gets in, and nothing is left.
func TestShared_Exclusion(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int64{0, 5} {
		for _, fair := range []bool{true, false} {
			t.Run(fmt.Sprintf("capacity %d, fair %v", capacity, fair), func(t *testing.T) {
				_, client := fresh(t)
				shareOut(t, client, capacity, 60, func(s *Settings) { s.Fair = fair })
			})
		}
	}
}

func shareOut(t *testing.T, client func() *redis.Client, capacity int64, rounds int, change func(*Settings)) {
	const parties, goroutines = 4, 3
	var inside atomic.Int64
	most := capacity
	if capacity == 0 {
		most = writes
	}
	var all sync.WaitGroup
	var ps []*party
	for range parties {
		p := newShares(t, client(), capacity, change)
		ps = append(ps, p)
		for g := range goroutines {
			all.Go(func() {
				for i := range rounds {
					units := int64(1)
					switch {
					case capacity == 0 && (g == 0 || i%7 == 0):
						units = writes
					case capacity > 0:
						units = 1 + int64(g+i)%capacity
					}
					s := p.mustTake(t, units)
					if n := inside.Add(units); n > most {
						t.Errorf("%d units of %d", n, most)
					}
					if i%5 == 0 {
						time.Sleep(time.Millisecond)
					}
					inside.Add(-units)
					mustGive(t, s)
				}
			})
		}
	}
	all.Wait()
	assertGone(t, client(), ps...)
}

// RLock without identity.
func TestShared_ReadersWithoutIdentity(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := newShares(t, client(), 0, nil), newShares(t, client(), 0, nil)
	k := a.Key("k", a.set)
	defer k.Done()
	ctx := context.Background()
	var value atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				if err := k.Enter(ctx, 0, 1, 0); err != nil {
					t.Error(err)
					return
				}
				if value.Load() < 0 {
					t.Error("beside a writer")
				}
				k.Leave(1, 0)
			}
		})
	}
	all.Go(func() {
		for range 30 {
			w := b.mustTake(t, writes)
			value.Store(-1)
			time.Sleep(200 * time.Microsecond)
			value.Store(0)
			mustGive(t, w)
		}
	})
	all.Wait()
	k.Done()
	assertGone(t, client(), a, b)
	k.refs.Add(1)
}

// S3: nobody comes between a writer and the reader that it becomes; others read beside it.
func TestShared_S3_Downgrade(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := newShares(t, client(), 0, nil), newShares(t, client(), 0, nil)
	w := a.mustTake(t, writes)
	got := make(chan *Owner)
	go func() { got <- b.mustTake(t, writes) }()
	awaitPlace(t, client(), 1)
	w.Downgrade()
	if w.Err() != nil {
		t.Error(w.Err())
	}
	select {
	case <-got:
		t.Fatal("another writer is in beside the reader")
	case <-time.After(50 * time.Millisecond):
	}
	mustGive(t, w)
	mustGive(t, <-got)

	w = a.mustTake(t, writes)
	w.Downgrade()
	r := b.mustTake(t, 1) // if another client waits, or after a linger, it gives up all but one
	mustGive(t, r)
	mustGive(t, w)
	assertGone(t, client(), a, b)
}

// S4: an owner is notified of a loss. While a reader that cannot be is inside, nobody of its process comes in.
func TestShared_S4_ALossIsNotified(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	lost := make(chan *Loss, 1)
	s := withUnits(&Owner{Stay: queue.Stay{Need: 1, Kind: queue.Refusable}, Holder: notify(func(l *Loss) { lost <- l })})
	if err := k.Acquire(context.Background(), s, nil); err != nil {
		t.Fatal(err)
	}
	if err := k.Enter(context.Background(), 0, 1, 0); err != nil {
		t.Fatal(err)
	}
	rdb.Del(t.Context(), "k")
	select {
	case l := <-lost:
		if l.Reason != "gone" {
			t.Errorf("%+v", l)
		}
	case <-time.After(pace.Hang):
		t.Fatal("not notified")
	}
	if r := s.Exit(context.Background()); r.Lost == nil {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.take(ctx, 1, 0); err == nil {
		t.Error("somebody is in beside a reader that has lost its unit")
	}
	k.Leave(1, 0)
	mustGive(t, p.mustTake(t, 1))
}

// S5: a reader's token is below no writer before it and below each after it.
func TestShared_S5_Tokens(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	fenced := func(s *Settings) { s.Fencing = true }
	ps := []*party{newShares(t, client(), 0, fenced), newShares(t, client(), 0, fenced)}
	var last int64 // of a writer; it is read beside readers only
	var newest atomic.Int64
	var all sync.WaitGroup
	for i, p := range ps {
		for g := range 4 {
			all.Go(func() {
				for j := range 60 {
					if (i+g+j)%4 == 0 {
						w := p.mustTake(t, writes)
						if seen := newest.Load(); w.Token() <= last || w.Token() <= seen {
							t.Errorf("a writer's token is %d after a writer's %d and a reader's %d", w.Token(), last, seen)
						}
						last = w.Token()
						mustGive(t, w)
						continue
					}
					r := p.mustTake(t, 1)
					if r.Token() < last {
						t.Errorf("a reader's token is %d after a writer's %d", r.Token(), last)
					}
					for n := newest.Load(); r.Token() > n && !newest.CompareAndSwap(n, r.Token()); n = newest.Load() {
					}
					mustGive(t, r)
				}
			})
		}
	}
	all.Wait()
}

// S5: a process may make half as many tokens as there are microseconds since Redis made the last one, not since it came to units.
func TestShared_S5_TokensStayBelowTheClock(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, func(s *Settings) { s.Fencing = true })
	r := p.mustTake(t, 1)
	g, k := r.g, r.g.k
	time.Sleep(300 * time.Millisecond)
	got := make(chan *Owner, 1)
	go func() { got <- p.mustTake(t, writes) }()
	eventually(t, "the units to write are there", func() bool { return k.q.Demand().Units == writes })
	mustGive(t, r)
	w := <-got
	if w.g != g || w.Token() <= r.Token() {
		t.Errorf("the writer has token %d after the reader's %d, grant %d after %d", w.Token(), r.Token(), w.g.n, g.n)
	}
	k.mu.Lock()
	handOffs := g.u.handOffs
	g.u.handOffs += 100_000_000 // in 200 s
	if _, wait := g.tokenLocked(withUnits(&Owner{Stay: queue.Stay{Need: writes}, g: g}), k.l.now()); wait <= 0 {
		t.Errorf("no wait for one of 100,000,000 tokens, %v after the grant", k.l.now()-g.since)
	}
	g.u.handOffs = handOffs
	k.mu.Unlock()
	mustGive(t, w)
}

// A token is for who has asked for one: the client whose release calls may have Fencing where this one has not.
func TestShared_S5_ACallFromAClientThatFences(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	fenced, p := newShares(t, client(), 0, func(s *Settings) { s.Fencing = true }), newShares(t, client(), 0, nil)
	w := fenced.mustTake(t, writes)
	got := make(chan *Owner, 1)
	go func() { got <- p.mustTake(t, writes) }()
	eventually(t, "it waits in line", func() bool {
		k := p.Find("k")
		if k != nil {
			defer k.Done()
		}
		return k != nil && k.Units().InLine
	})
	mustGive(t, w)
	s := <-got
	if s.Token() != 0 {
		t.Errorf("token %d without Fencing", s.Token())
	}
	mustGive(t, s)
}

// S6: no holder's own capacity is exceeded, and each client reports what the other counts with, not what it states itself.
func TestShared_S6_Capacities(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	small, large := newShares(t, client(), 2, nil), newShares(t, client(), 4, nil)
	s := small.mustTake(t, 1)
	l := large.mustTake(t, 1)
	if tryTake(t, large, 1) || tryTake(t, small, 1) {
		t.Error("three units beside one who takes two for the capacity")
	}
	mustGive(t, s)
	more := large.mustTake(t, 3)
	if tryTake(t, small, 1) {
		t.Error("five units")
	}
	mustGive(t, more)
	mustGive(t, l)
	assertGone(t, client(), small, large)
	for p, want := range map[*party][2]int64{small: {2, 4}, large: {4, 2}} {
		p.rep.mu.Lock()
		if reported := p.rep.capacities; len(reported) != 1 || reported[want] == 0 {
			t.Errorf("reported %v, want only %v", reported, want)
		}
		p.rep.mu.Unlock()
	}
}

// S16: units in use are renewed, by a command.
func TestShared_S16_Renews(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 3, func(s *Settings) {
		s.Lease = stretchedBy(Lease{For: 600 * time.Millisecond, Period: 200 * time.Millisecond, Margin: 60 * time.Millisecond})
	})
	s := p.mustTake(t, 2)
	time.Sleep(p.set.Lease.For * 5 / 2)
	if l := s.Err(); l != nil {
		t.Fatal(l)
	}
	if n := s.g.lease.Renewals(); n < 3 {
		t.Errorf("%d renewals", n)
	}
	mustGive(t, s)
	assertGone(t, client(), p)
}

// P9: nobody else comes in before the owner was notified that its lease ends.
func TestShared_P9_ADeadlineIsNotifiedBeforeTheNext(t *testing.T) {
	t.Parallel()
	s, client := fresh(t)
	brief := func(s *Settings) {
		s.Lease = stretchedBy(Lease{For: 600 * time.Millisecond, Period: 200 * time.Millisecond, Margin: 60 * time.Millisecond})
		s.Timeout = pace.Scale(100 * time.Millisecond)
	}
	cut := &faults{}
	rdb := client()
	rdb.AddHook(cut)
	a, b := newShares(t, rdb, 0, brief), newShares(t, client(), 0, brief)
	_ = s
	var at atomic.Int64
	k := a.Key("k", a.set)
	defer k.Done()
	w := withUnits(&Owner{Stay: queue.Stay{Need: 1, Kind: queue.Refusable}, Holder: notify(func(*Loss) { at.Store(time.Now().UnixNano()) })})
	if err := k.Acquire(context.Background(), w, nil); err != nil {
		t.Fatal(err)
	}
	cut.refuse.Store(1000)
	other := b.mustTake(t, writes)
	if n := at.Load(); n == 0 || n > time.Now().UnixNano() {
		t.Error("the owner was not notified before another came in")
	}
	cut.refuse.Store(0)
	mustGive(t, other)
	if r := w.Exit(context.Background()); r.Lost == nil {
		t.Errorf("%+v", r)
	}
}

// S20: nobody passes a waiter for whom the units do not suffice, so readers do not starve a writer, and small requests do not starve a large one.
func TestShared_S20_NobodyStarves(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int64{0, 4} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			_, client := fresh(t)
			large := capacity
			if large == 0 {
				large = writes
			}
			stop := make(chan struct{})
			var all sync.WaitGroup
			for range 3 {
				p := newShares(t, client(), capacity, nil)
				for range 2 {
					all.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
							}
							s := p.mustTake(t, 1)
							time.Sleep(2 * time.Millisecond)
							mustGive(t, s)
						}
					})
				}
			}
			p := newShares(t, client(), capacity, nil)
			for range 20 {
				begin := time.Now()
				mustGive(t, p.mustTake(t, large))
				if d := time.Since(begin); !pace.Within(d, 2*time.Second) {
					t.Errorf("waited for %v", d)
				}
			}
			close(stop)
			all.Wait()
		})
	}
}

// S29: a grant admits whom it was for, although others wait and the process has had enough before: a reader comes in beside
// those of its process when it is its turn.
func TestShared_S29_AGrantOfWhatWasHad(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b, c := newShares(t, client(), 0, nil), newShares(t, client(), 0, nil), newShares(t, client(), 0, nil)
	k := a.Key("k", a.set)
	defer k.Done()
	wait := func(p *party, ctx context.Context, units int64, ahead int) chan *Owner {
		in := make(chan *Owner, 1)
		go func() {
			s, err := p.take(ctx, units, 0)
			if err != nil {
				s = nil
			}
			in <- s
		}()
		k := p.Key("k", p.set)
		defer k.Done()
		eventually(t, "it waits in line", func() bool { s := k.Units(); return s.InLine && s.Ahead == ahead })
		return in
	}
	for _, p := range []*party{a, b, c} { // who does not listen is passed in line
		p.wire.Subscribe()
		eventually(t, "it listens", p.wire.Listening)
	}
	r1 := a.mustTake(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	w1 := wait(b, ctx, writes, 0)
	eventually(t, "the turn is over", func() bool { d := k.q.Demand(); return d.Contended && k.l.now() > d.TurnEnds })
	r2 := wait(a, context.Background(), 1, 1)
	w2 := wait(c, context.Background(), writes, 2)
	cancel()
	<-w1
	select {
	case s := <-r2:
		mustGive(t, s)
	case <-time.After(pace.Hang):
		t.Error("the reader waits for the one of its process")
		defer func() { mustGive(t, <-r2) }()
	}
	mustGive(t, r1)
	mustGive(t, <-w2)
}

// S29: so is a call that comes before the answer to the command that has made the place.
func TestShared_S29_ACallBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, h, f := client(), client(), &holdUp{}
	h.AddHook(f)
	a, b, c := newShares(t, h, 0, func(s *Settings) { s.Timeout = pace.Scale(5 * time.Second) }), newShares(t, client(), 0, nil), newShares(t, client(), 0, nil)
	for _, p := range []*party{a, b, c} { // who does not listen is passed in line
		p.wire.Subscribe()
		eventually(t, "it listens", p.wire.Listening)
	}
	k := a.Key("k", a.set)
	defer k.Done()
	r1 := a.mustTake(t, 1)
	eventually(t, "the call lease was renewed", func() bool { return r1.g.lease.Renewals() > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	w1 := make(chan error, 1)
	go func() {
		_, err := b.take(ctx, writes, 0)
		w1 <- err
	}()
	eventually(t, "the turn is over", func() bool { d := k.q.Demand(); return d.Contended && k.l.now() > d.TurnEnds })
	end := f.hold(&f.answers)
	r2, w2 := make(chan *Owner, 1), make(chan *Owner, 1)
	go func() { r2 <- a.mustTake(t, 1) }()
	awaitPlace(t, rdb, 2)
	go func() { w2 <- c.mustTake(t, writes) }()
	awaitPlace(t, rdb, 3)
	cancel()
	<-w1
	eventually(t, "it is called", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.u.lastServed == k.conv.LastCommand().N
	})
	end()
	select {
	case s := <-r2:
		mustGive(t, s)
	case <-time.After(pace.Hang):
		t.Error("the reader has lost its turn to a writer that came after it")
		defer func() { mustGive(t, <-r2) }()
	}
	mustGive(t, r1)
	mustGive(t, <-w2)
}

// S22: a lost message that another client waits costs a second.
func TestShared_S22_ALostMessage(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rarely := func(s *Settings) {
		s.Lease = Lease{For: 30 * time.Second, Period: 10 * time.Second, Margin: time.Second}
	}
	a, b := newShares(t, client(), 0, rarely), newShares(t, client(), 0, rarely)
	k := a.Key("k", a.set)
	defer k.Done()
	ctx := context.Background()
	for range 2 { // the gate is open from the second reader on
		if err := k.Enter(ctx, 0, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	eventually(t, "the call lease was renewed", func() bool { return k.Held().lease.Renewals() > 0 })
	a.unsubscribed.Store(true)
	begin := time.Now()
	all.Go(func() { mustGive(t, b.mustTake(t, writes)) })
	eventually(t, "the gate is closed", func() bool { return k.q.Demand().Contended })
	if d := time.Since(begin); !pace.Within(d, 5*time.Second) { // the next renewal comes after ten
		t.Errorf("after %v", d)
	}
	a.unsubscribed.Store(false)
	k.Leave(1, 0)
	k.Leave(1, 0)
	all.Wait()
}

// S24: a try does not wait in line, and is refused where anybody does.
func TestShared_S24_ATry(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b, c := newShares(t, client(), 0, nil), newShares(t, client(), 0, nil), newShares(t, client(), 0, nil)
	r := a.mustTake(t, 1)
	if tryTake(t, b, writes) {
		t.Error("a writer beside a reader")
	}
	if n := client().Exists(t.Context(), "anteroom:line:{k}").Val(); n != 0 {
		t.Error("a try waits in line")
	}
	got := make(chan *Owner)
	go func() { got <- b.mustTake(t, writes) }()
	awaitPlace(t, client(), 1)
	if tryTake(t, c, 1) || tryTake(t, a, 1) {
		t.Error("a reader has passed a writer")
	}
	mustGive(t, r)
	mustGive(t, <-got)
	assertGone(t, client(), a, b, c)
}

// S24: a try passes nobody, though others may while the next one is on its way and has not run.
func TestShared_S24_ATryBesideAnHeir(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, func(s *Settings) { s.Fair = false })
	k := p.Key("k", p.set)
	defer k.Done()
	first := p.mustTake(t, writes)
	next := make(chan *Owner)
	go func() { next <- p.mustTake(t, writes) }()
	eventually(t, "another one waits", func() bool { return k.q.Len() == 1 })
	mustGive(t, first)
	second := <-next
	heir := &queue.Waiter{Stay: &queue.Stay{Need: writes, Kind: queue.NoNotify}} // which does not Park yet
	_, order, _ := k.q.Acquire(heir)
	k.carryOut(order)
	mustGive(t, second)
	if err := k.Enter(t.Context(), queue.Try|queue.Refusable, 1, 0); err == nil {
		t.Error("a reader that tries has passed the heir")
		k.Leave(1, 0)
	} else if err != ErrRefused { //nolint:errorlint // never wrapped
		t.Error(err)
	}
	if k.Join() { // who waits may
		k.Leave(1, 0)
	} else {
		t.Error("the gate is closed: the test shows nothing")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	order, _ = k.q.Park(ended, heir)
	k.carryOut(order)
	k.Done()
	assertGone(t, client(), p)
	k.refs.Add(1)
}

// S24: who waits in line states again as a Mutex does (P7), and the first two also when a lease ends.
func TestShared_S24_TheFirstTwoStateWhenALeaseEnds(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, nil)
	p.wire.Subscribe()
	eventually(t, "it listens", p.wire.Listening)
	k := p.Key("k", p.set)
	defer k.Done()
	for ahead, soon := range []bool{true, true, false} {
		for _, next := range []time.Duration{-1, 20 * ms} {
			h := k.event(1, &lettucecompat.Answer{Word: lettucecompat.WordWaits, Ahead: ahead, Next: next})
			if h.Kind != conversation.Waits || (h.After < next+5*ms) != (soon && next > 0) {
				t.Errorf("%d ahead, a lease ends in %v: again after %v", ahead, next, h.After)
			}
			if most := k.l.rhythm(k.set.times.Life, ahead, -1); h.After > most {
				t.Errorf("%d ahead: again after %v, a Mutex after %v", ahead, h.After, most)
			}
		}
	}
}

// S30: units that nobody uses serve the next one for 10 ms. Where only one was here they go back immediately, so that
// after an unlock another process' try succeeds.
func TestShared_S30_Linger(t *testing.T) {
	t.Parallel()
	s, client := fresh(t)
	rdb := client()
	p, q := newShares(t, client(), 0, nil), newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	ctx := context.Background()
	if err := k.Enter(ctx, 0, 1, 0); err != nil {
		t.Fatal(err)
	}
	k.Leave(1, 0)
	if !tryTake(t, q, writes) {
		t.Error("refused after the only reader has left")
	}
	time.Sleep(3 * linger)
	before := total(s.Stats(t))
	gaps := int64(0) // a busy machine takes so long that they are given back meanwhile
	for range 200 {
		begin := time.Now()
		mustGive(t, p.mustTake(t, 1))
		if time.Since(begin) > linger/2 {
			gaps++
		}
	}
	// Without a linger each costs two or more. A timer that comes late on a busy machine costs more than gaps can say.
	if n := total(s.Stats(t)) - before; n > 200+4*gaps {
		t.Errorf("%d commands for 200 readers, with %d gaps", n, gaps)
	}
	eventually(t, "it is free", func() bool { return rdb.Exists(ctx, "k").Val() == 0 })
}

func total(stats map[string]int64) (n int64) {
	for _, calls := range stats {
		n += calls
	}
	return n
}

// Answers are lost, commands land late or are never sent: nobody relies on more than there is, and after that everybody
// gets in and nothing is left. Where somebody deletes the key, too many may rely on it, until they are notified.
func TestShared_LostAndLate_Lab(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		capacity int64
		deleted  bool
	}{{0, false}, {3, false}, {0, true}, {3, true}} {
		t.Run(fmt.Sprintf("%+v", v), func(t *testing.T) {
			t.Parallel()
			capacity := v.capacity
			_, client := fresh(t)
			brief := func(s *Settings) {
				s.Lease = stretchedBy(Lease{For: 600 * time.Millisecond, Period: 200 * time.Millisecond, Margin: 60 * time.Millisecond})
				s.Timeout = pace.Scale(100 * time.Millisecond)
			}
			most := capacity
			if capacity == 0 {
				most = writes
			}
			var inside atomic.Int64
			var all sync.WaitGroup
			var hooks []*faults
			var ps []*party
			end := time.Now().Add(4 * time.Second)
			for range 3 {
				f := &faults{}
				f.lose.Store(60)
				f.late.Store(60)
				f.refuse.Store(30)
				rdb := client()
				rdb.AddHook(f)
				p := newShares(t, rdb, capacity, brief)
				hooks, ps = append(hooks, f), append(ps, p)
				k := p.Key("k", p.set)
				defer k.Done()
				for g := range 3 {
					all.Go(func() {
						for i := 0; time.Now().Before(end); i++ {
							units := int64(1)
							if capacity > 0 {
								units = 1 + int64(g+i)%capacity
							} else if (g+i)%4 == 0 {
								units = writes
							}
							var once sync.Once
							out := func() { inside.Add(-units) }
							ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
							entered := make(chan struct{})
							s := withUnits(&Owner{Stay: queue.Stay{Need: int32(units), Kind: queue.Refusable}, Holder: notify(func(*Loss) { <-entered; once.Do(out) })})
							err := k.Acquire(ctx, s, nil)
							if cancel(); err != nil {
								close(entered)
								if !errors.As(err, new(*AnswerError)) {
									t.Errorf("%v", err)
								}
								continue
							}
							if n := inside.Add(units); n > most && !v.deleted {
								t.Errorf("%d units of %d", n, most)
							}
							close(entered)
							if i%3 == 0 {
								time.Sleep(time.Millisecond)
							}
							if s.Err() == nil {
								once.Do(out)
							}
							s.Exit(context.Background())
							once.Do(out)
						}
					})
				}
			}
			rdb := client()
			for time.Now().Before(end) {
				time.Sleep(300 * time.Millisecond)
				rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
				if v.deleted {
					rdb.Del(t.Context(), "k")
				}
			}
			all.Wait()
			for _, f := range hooks {
				f.lose.Store(0)
				f.late.Store(0)
				f.refuse.Store(0)
			}
			for _, p := range ps {
				mustGive(t, p.mustTake(t, most))
			}
			eventually(t, "nothing is left", func() bool {
				return rdb.Exists(context.Background(), "k", "anteroom:line:{k}").Val() == 0
			})
		})
	}
}

// Close refuses who comes and who waits, and waits until all is given back.
func TestShared_Close(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 2, nil)
	s := p.mustTake(t, 2)
	failed := make(chan error)
	go func() {
		_, err := p.take(context.Background(), 1, 0)
		failed <- err
	}()
	eventually(t, "somebody waits", func() bool { return s.g.k.q.Demand().Waiting == 1 })
	p.BeginClose()
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := p.take(context.Background(), 1, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), pace.Hang)
	defer cancel()
	done := make(chan int)
	go func() {
		lost, unsettled := p.Settle(ctx)
		done <- len(lost) + unsettled
	}()
	select {
	case <-done:
		t.Fatal("closed while units are held")
	case <-time.After(50 * time.Millisecond):
	}
	mustGive(t, s)
	if n := <-done; n != 0 {
		t.Errorf("%d left", n)
	}
	if n := client().Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("not given back")
	}
}

// Holds that are left when Close gives up are lost.
func TestShared_CloseGivesUp(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 2, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	lost := make(chan *Loss, 1)
	s := withUnits(&Owner{Stay: queue.Stay{Need: 2, Kind: queue.Refusable}, Holder: notify(func(l *Loss) { lost <- l })})
	if err := k.Acquire(context.Background(), s, nil); err != nil {
		t.Fatal(err)
	}
	p.BeginClose()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if left, unsettled := p.Settle(ctx); len(left) != 1 || unsettled != 0 {
		t.Errorf("%d lost, %d unsettled", len(left), unsettled)
	}
	if l := <-lost; l.Reason != "closed" {
		t.Errorf("%+v", l)
	}
	s.Exit(context.Background())
}
