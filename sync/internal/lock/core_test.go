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
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m)
}

// reporter counts its calls.
type reporter struct {
	called, found, failed atomic.Int64
	mu                    sync.Mutex
	losses                []*Loss
	givenUp               int
	capacities            map[[2]int64]int // reports of how many units here and there
}

func (r *reporter) Failed(*Key, string, error) { r.failed.Add(1) }
func (r *reporter) Answered(*Key, *string)     {}
func (r *reporter) Called(_ *Key, found bool) {
	if found {
		r.found.Add(1)
	} else {
		r.called.Add(1)
	}
}

func (r *reporter) Lost(_ *Held, l *Loss) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.losses = append(r.losses, l)
}
func (r *reporter) ReleaseFailed(*Held, error) {}
func (r *reporter) ReleaseGivenUp(*Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.givenUp++
}

func (r *reporter) Capacity(_ *Key, here, there int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.capacities == nil {
		r.capacities = map[[2]int64]int{}
	}
	r.capacities[[2]int64{here, there}]++
}

// notify is a Holder.
type notify func(*Loss)

func (f notify) Lost(_ *Owner, l *Loss) { f(l) }

// longLease is for who is at a hand-off, or whatever takes milliseconds: what waits for the lease to end takes far longer.
func longLease(s *Settings) {
	s.Lease = Lease{For: 30 * time.Second, Period: 10 * time.Second, Margin: 1500 * time.Millisecond}
}

// beforeTheLease bounds what does not wait for a longLease to end.
const beforeTheLease = 10 * time.Second

// stretched is a lease that a loaded machine renews in time, as an idle one renews l.
func stretchedBy(l Lease) Lease {
	l.For, l.Margin = pace.Scale(l.For), pace.Scale(l.Margin)
	if l.Period > 0 {
		l.Period = pace.Scale(l.Period)
	}
	return l
}

// party is one client with a connection pool of its own, as a process has.
type party struct {
	*Locks
	set          *Settings
	rep          *reporter
	up           chan struct{} // closed once it listens
	unsubscribed atomic.Bool   // messages are lost
	dead         bool          // see die
}

func newParty(t testing.TB, rdb *redis.Client, change func(*Settings)) *party {
	t.Helper()
	set := &Settings{
		Fair: true, Lease: stretchedBy(Lease{For: 3 * time.Second, Period: time.Second, Margin: 150 * time.Millisecond}),
		MaxHandoffs: 10_000, MaxHandoffTime: 20 * time.Millisecond, Timeout: pace.Scale(500 * time.Millisecond),
	}
	if change != nil {
		change(set)
	}
	set.Prepare()
	p := &party{set: set, rep: &reporter{}, up: make(chan struct{})}
	var once sync.Once
	id := lettucecompat.NewClientID("party")
	wire, err := lettucecompat.New(rdb, lettucecompat.Options{
		ClientID: id, CommandTimeout: set.Timeout,
		OnMessage: func(m lettucecompat.Message) {
			if !p.unsubscribed.Load() {
				p.Heard(m)
			}
		},
		OnSubscription: func(up bool, _ error) {
			if up {
				p.Resubscribed()
				once.Do(func() { close(p.up) })
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Locks = New(Config{
		Wire: wire, ClientID: id, Reporter: p.rep,
		Timeout: func(time.Duration) time.Duration { return set.Timeout },
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
		defer cancel()
		if p.dead { // nobody waits for what it has not given back
			cancel()
		}
		if left := p.close(ctx); left > 0 {
			t.Errorf("%d locks were still held at the end", left)
		}
		wire.Close()
	})
	return p
}

// close is what a Manager does at its end.
func (p *party) close(ctx context.Context) (left int) {
	p.BeginClose()
	lost, _ := p.Settle(ctx)
	p.Stop()
	return len(lost)
}

func (p *party) acquire(ctx context.Context, key string, kind queue.Kind) (*Owner, error) {
	k := p.Key(key, p.set)
	defer k.Done()
	o := &Owner{Stay: queue.Stay{Kind: kind | queue.Refusable}, Holder: notify(func(*Loss) {})}
	return o, k.Acquire(ctx, o, nil)
}

func (p *party) mustAcquire(t testing.TB, key string) *Owner {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
	defer cancel()
	o, err := p.acquire(ctx, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func mustRelease(t testing.TB, o *Owner) {
	t.Helper()
	switch r := o.Exit(context.Background()); {
	case r.Lost != nil && r.Lost.Reason == renewal.ReasonDeadline && pace.Factor() > 2: // the first lease is of two seconds, whatever the machine
		t.Logf("on a loaded machine: %v", r.Lost)
	case r.Lost != nil || r.Err != nil || r.Stale:
		t.Errorf("release: %+v", r)
	}
}

func fresh(t testing.TB) (*testredis.Server, func() *redis.Client) {
	s := testredis.Start(t)
	return s, func() *redis.Client { return s.Client(t) }
}

func TestCore_LockAndRelease(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, rdb, nil)
	for range 3 {
		o := p.mustAcquire(t, "k")
		if n := rdb.Exists(t.Context(), "k").Val(); n != 1 {
			t.Fatalf("EXISTS: %d while it is held", n)
		}
		mustRelease(t, o)
		if n := rdb.Exists(t.Context(), "k", "anteroom:line:{k}").Val(); n != 0 {
			t.Fatalf("EXISTS: %d after the release", n)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.keys) > 0 || len(p.grants) > 0 {
		t.Errorf("%d keys and %d grants are kept", len(p.keys), len(p.grants))
	}
}

// The lock goes round among several processes with several goroutines: one owner at any time, everybody gets in, tokens
// grow, and nothing is left.
func TestCore_Exclusion(t *testing.T) {
	t.Parallel()
	for _, fair := range []bool{true, false} {
		t.Run(fmt.Sprintf("fair %v", fair), func(t *testing.T) {
			_, client := fresh(t)
			rdb := client()
			const parties, goroutines, rounds = 4, 3, 60
			var inside atomic.Int32
			var last, entered atomic.Int64
			var all sync.WaitGroup
			for range parties {
				p := newParty(t, client(), func(s *Settings) { s.Fair, s.Fencing, s.MaxHandoffs = fair, true, 5 })
				for range goroutines {
					all.Go(func() {
						for range rounds {
							o := p.mustAcquire(t, "k")
							if inside.Add(1) != 1 {
								t.Error("two owners")
							}
							if before := last.Swap(o.Token()); o.Token() <= before {
								t.Errorf("token %d after %d", o.Token(), before)
							}
							entered.Add(1)
							inside.Add(-1)
							mustRelease(t, o)
						}
					})
				}
			}
			all.Wait()
			if n := entered.Load(); n != parties*goroutines*rounds {
				t.Errorf("%d entered", n)
			}
			if n := rdb.Exists(t.Context(), "k", "anteroom:line:{k}").Val(); n != 0 {
				t.Errorf("EXISTS: %d at the end", n)
			}
		})
	}
}

// A release gives the lock to the next process by a message: nobody asks again.
func TestCore_AReleaseCallsTheNext(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := newParty(t, client(), nil), newParty(t, client(), nil)
	mustRelease(t, b.mustAcquire(t, "another")) // else the subscription begins meanwhile, and has the place confirmed
	eventually(t, "b listens", b.wire.Listening)
	first := a.mustAcquire(t, "k")
	got := make(chan *Owner)
	go func() { got <- b.mustAcquire(t, "k") }()
	awaitPlace(t, client(), 1)
	begin := time.Now()
	mustRelease(t, first)
	second := <-got
	if d := time.Since(begin); !pace.Within(d, 2*time.Second) {
		t.Errorf("the next came in after %v", d)
	}
	eventually(t, "the call is counted", func() bool { return b.rep.called.Load() == 1 })
	mustRelease(t, second)
}

func awaitPlace(t testing.TB, rdb *redis.Client, n int64) {
	t.Helper()
	for end := time.Now().Add(pace.Hang); ; time.Sleep(time.Millisecond) {
		places := int64(0)
		for f := range rdb.HGetAll(context.Background(), "anteroom:line:{k}").Val() {
			if f[0] == 'p' {
				places++
			}
		}
		if places == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d places, want %d", places, n)
		}
	}
}

// P13: a try is refused immediately where somebody has the lock, here or elsewhere, and leaves nothing.
func TestCore_P13_Try(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	a, b := newParty(t, client(), nil), newParty(t, client(), nil)
	o, err := a.acquire(t.Context(), "k", queue.Try)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*party{a, b} {
		if _, err := p.acquire(t.Context(), "k", queue.Try); !errors.Is(err, ErrRefused) {
			t.Errorf("a try beside an owner: %v", err)
		}
	}
	if n := rdb.Exists(t.Context(), "anteroom:line:{k}").Val(); n != 0 {
		t.Error("a refused try has left a line")
	}
	mustRelease(t, o)
	if o, err = b.acquire(t.Context(), "k", queue.Try); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, o)
}

// A waiter whose context ends leaves its place.
func TestCore_AWaiterThatGivesUpLeaves(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := newParty(t, client(), nil), newParty(t, client(), nil)
	o := a.mustAcquire(t, "k")
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() { _, err := b.acquire(ctx, "k", 0); got <- err }()
	awaitPlace(t, client(), 1)
	cancel()
	if err := <-got; err == nil {
		t.Error("it came in")
	}
	awaitPlace(t, client(), 0)
	mustRelease(t, o)
}

// A held lock is renewed for as long as it is held.
func TestCore_Renews_Lab(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), func(s *Settings) {
		s.Lease = stretchedBy(Lease{For: 750 * time.Millisecond, Period: 150 * time.Millisecond, Margin: 50 * time.Millisecond})
	})
	o := p.mustAcquire(t, "k")
	for end := time.Now().Add(p.set.Lease.For * 5 / 3); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err := o.Err(); err != nil {
			t.Fatal(err)
		}
	}
	mustRelease(t, o)
}

// A loss is notified by the answer to a renewal, the queue moves on, and a late exit says so.
func TestCore_ALossIsNotified(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) {
		s.Lease = Lease{For: 3 * time.Second, Period: 100 * time.Millisecond, Margin: 150 * time.Millisecond}
	})
	k := p.Key("k", p.set)
	defer k.Done()
	notified := make(chan *Loss, 1)
	o := &Owner{Holder: notify(func(l *Loss) { notified <- l })}
	if err := k.Acquire(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	rdb.Del(t.Context(), "k")
	if l := <-notified; l.Reason != "gone" {
		t.Errorf("lost: %v", l)
	}
	mustRelease(t, p.mustAcquire(t, "k"))
	if r := o.Exit(t.Context()); r.Lost == nil {
		t.Errorf("the exit after the loss: %+v", r)
	}
}

// Who loses the lock while Redis does not answer is notified before anybody else gets in.
func TestCore_ADeadlineIsNotifiedBeforeTheNext(t *testing.T) {
	t.Parallel()
	s, client := fresh(t)
	short := func(s *Settings) {
		s.Timeout = pace.Scale(100 * time.Millisecond)
		s.Lease = stretchedBy(Lease{For: 800 * time.Millisecond, Period: 250 * time.Millisecond, Margin: 80 * time.Millisecond})
	}
	a, b := newParty(t, client(), short), newParty(t, client(), short)
	k := a.Key("k", a.set)
	defer k.Done()
	var notifiedAt atomic.Int64
	o := &Owner{Holder: notify(func(*Loss) { notifiedAt.Store(time.Now().UnixNano()) })}
	if err := k.Acquire(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	got := make(chan time.Time)
	go func() {
		o := b.mustAcquire(t, "k")
		got <- time.Now()
		mustRelease(t, o)
	}()
	awaitPlace(t, client(), 1)
	s.Pause()
	time.AfterFunc(a.set.Lease.For*3/2, s.Resume)
	next := <-got
	if at := notifiedAt.Load(); at == 0 || at > next.UnixNano() {
		t.Errorf("the owner was notified at %d, the next came in at %d", at, next.UnixNano())
	}
	o.Exit(t.Context())
}

func BenchmarkCore_HandOff(b *testing.B) {
	for _, fair := range []bool{true, false} {
		b.Run(fmt.Sprintf("fair=%v", fair), func(b *testing.B) {
			_, client := fresh(b)
			p := newParty(b, client(), func(s *Settings) { s.Fair = fair })
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					o, err := p.acquire(context.Background(), "k", 0)
					if err != nil {
						b.Error(err)
						return
					}
					o.Exit(context.Background())
				}
			})
		})
	}
}

const ms = time.Millisecond
