package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// faults is a hook of a client that loses answers, sends late and refuses to send.
type faults struct {
	lose, late, refuse atomic.Int64 // of 1000 commands
	lost               atomic.Int64
}

var errCut = errors.New("the connection was cut")

func (f *faults) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *faults) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return f.around(func() error { return next(ctx, cmd) })
	}
}

func (f *faults) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return f.around(func() error { return next(ctx, cmds) })
	}
}

func (f *faults) around(send func() error) error {
	if rand.Int64N(1000) < f.refuse.Load() {
		return &net.OpError{Op: "dial", Err: errCut}
	}
	if rand.Int64N(1000) < f.late.Load() {
		time.Sleep(rand.N(150 * time.Millisecond))
	}
	err := send()
	if rand.Int64N(1000) < f.lose.Load() {
		f.lost.Add(1)
		return errCut
	}
	return err
}

// Answers are lost, commands land late or are never sent: no two owners rely on the lock at one moment, and after
// that everybody gets in and nothing is left.
func TestCore_LostAndLate_Lab(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	var hooks []*faults
	var current atomic.Pointer[Owner]
	var entered, losses atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		f, c := &faults{}, client()
		c.AddHook(f)
		hooks = append(hooks, f)
		p := newParty(t, c, func(s *Settings) {
			s.Timeout = 60 * time.Millisecond
			s.Lease = Lease{For: 400 * time.Millisecond, Period: 120 * time.Millisecond, Margin: 30 * time.Millisecond}
			s.MaxHandoffs = 3
		})
		for range 2 {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					ctx, cancel := context.WithTimeout(context.Background(), rand.N(2*time.Second))
					o, err := p.acquire(ctx, "k", 0)
					cancel()
					if err != nil {
						continue
					}
					entered.Add(1)
					before := current.Swap(o)
					if before != nil && before.Err() == nil && o.Err() == nil {
						t.Errorf("two owners: %s beside %s", o.g.Field(), before.g.Field())
					}
					time.Sleep(rand.N(3 * time.Millisecond))
					if rand.IntN(60) == 0 {
						time.Sleep(rand.N(600 * time.Millisecond))
					}
					current.CompareAndSwap(o, nil)
					if r := o.Exit(context.Background()); r.Lost != nil {
						losses.Add(1)
					}
				}
			})
		}
	}
	for _, f := range hooks {
		f.lose.Store(80)
		f.late.Store(60)
		f.refuse.Store(30)
	}
	lost := func() (n int64) {
		for _, f := range hooks {
			n += f.lost.Load()
		}
		return n
	}
	for end := time.Now().Add(pace.Hang); (entered.Load() < 200 || lost() < 30) && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	for _, f := range hooks {
		f.lose.Store(0)
		f.late.Store(0)
		f.refuse.Store(0)
	}
	close(stop)
	all.Wait()
	t.Logf("%d entered, %d were notified of a loss, %d answers were lost", entered.Load(), losses.Load(), lost())
	if entered.Load() < 200 || lost() < 30 {
		t.Error("too few to try anything")
	}
	for end := time.Now().Add(pace.Hang); rdb.Exists(context.Background(), "k", "anteroom:line:{k}").Val() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("left: %v, %v", rdb.HGetAll(context.Background(), "k").Val(), rdb.HGetAll(context.Background(), "anteroom:line:{k}").Val())
		}
	}
}

// A release whose answer is lost is repeated, and says that the lock was released; one that finds that somebody has
// deleted the lock before says that it was lost.
func TestCore_P8_AReleaseWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, c, f := client(), client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, func(s *Settings) { s.Timeout = pace.Scale(5 * time.Second) }) // a busy machine has time
	o := p.mustAcquire(t, "k")
	f.lose.Store(1000)
	time.AfterFunc(100*time.Millisecond, func() { f.lose.Store(0) })
	if r := o.Exit(t.Context()); r.Lost != nil || r.Err != nil {
		t.Errorf("answer lost: %+v", r)
	}
	o = p.mustAcquire(t, "k")
	rdb.Del(t.Context(), "k")
	if r := o.Exit(t.Context()); r.Lost == nil {
		t.Errorf("deleted before: %+v", r)
	}
	o = p.mustAcquire(t, "k")
	f.refuse.Store(1000)
	rdb.Del(t.Context(), "k")
	time.AfterFunc(100*time.Millisecond, func() { f.refuse.Store(0) })
	if r := o.Exit(t.Context()); r.Lost == nil {
		t.Errorf("never sent, and deleted before: %+v", r)
	}
}

// P15: an application's hash is no lock.
func TestCore_P15_AnApplicationsHashIsRefused(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	rdb.HSet(t.Context(), "k", "user", "anne", "visits", "3")
	p := newParty(t, client(), nil)
	_, err := p.acquire(t.Context(), "k", 0)
	var answer *AnswerError
	if !errors.As(err, &answer) || !answer.Permanent {
		t.Errorf("%v", err)
	}
	if n := rdb.HLen(t.Context(), "k").Val(); n != 2 {
		t.Errorf("%d fields are left", n)
	}
}

// A fixed lease that nobody releases ends by itself and keeps nothing.
func TestCore_P12_AFixedLeaseKeepsNothing(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), nil)
	k := p.Key("k", p.set)
	lost := make(chan *Loss, 1)
	o := &Owner{Holder: notify(func(l *Loss) { lost <- l })}
	lease := stretchedBy(Lease{For: 300 * time.Millisecond, Period: -1, Margin: 30 * time.Millisecond})
	if err := k.Acquire(t.Context(), o, &lease); err != nil {
		t.Fatal(err)
	}
	k.Done()
	if d := time.Until(o.Deadline()); d > lease.For {
		t.Errorf("the deadline is %v away", d)
	}
	<-lost
	eventually(t, "no key is kept", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.keys) == 0
	})
}

// MinHold keeps the key taken to its end, also while others wait.
func TestCore_P12_MinHold(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a := newParty(t, client(), func(s *Settings) { s.MinHold = 400 * time.Millisecond })
	b := newParty(t, client(), nil)
	begin := time.Now()
	o := a.mustAcquire(t, "k")
	mustRelease(t, o)
	o = b.mustAcquire(t, "k")
	if d := time.Since(begin); d < 400*time.Millisecond || !pace.Within(d, 3*time.Second) {
		t.Errorf("the next came in after %v", d)
	}
	mustRelease(t, o)
}

// A foreign client gets its turn among ours.
func TestCore_P15_AForeignClientGetsItsTurn(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	ctx, cancel := context.WithTimeout(t.Context(), pace.Hang)
	defer cancel()
	var all sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		p := newParty(t, client(), nil)
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				o := p.mustAcquire(t, "k")
				time.Sleep(time.Millisecond)
				mustRelease(t, o)
			}
		})
	}
	// As the design document's own client: HSET where nothing is, a subscription, PUBLISH at the release.
	sub := rdb.Subscribe(ctx, "lock:release:k")
	defer sub.Close()
	turns := 0
	take := redis.NewScript(`if redis.call('exists', KEYS[1]) == 1 then return 0 end
		redis.call('hset', KEYS[1], ARGV[1], '1') redis.call('pexpire', KEYS[1], '5000') return 1`)
	for turns < 5 && ctx.Err() == nil {
		if take.Run(ctx, rdb, []string{"k"}, "foreign:1").Val() != int64(1) {
			_, _ = sub.ReceiveTimeout(ctx, 20*time.Millisecond)
			continue
		}
		turns++
		rdb.Del(ctx, "k")
		rdb.Publish(ctx, "lock:release:k", `{"lockKey":"k","releaseTime":1,"holder":"foreign:1"}`)
	}
	close(done)
	all.Wait()
	if turns < 5 {
		t.Errorf("%d turns", turns)
	}
}

// A forced release is announced by a message, and the next one comes in.
func TestCore_Forced(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := newParty(t, client(), longLease), newParty(t, client(), longLease)
	k := a.Key("k", a.set)
	defer k.Done()
	lost := make(chan *Loss, 1)
	o := &Owner{Stay: queue.Stay{Kind: queue.Refusable}, Holder: notify(func(l *Loss) { lost <- l })}
	if err := k.Acquire(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	got := make(chan *Owner)
	go func() { got <- b.mustAcquire(t, "k") }()
	awaitPlace(t, client(), 1)
	begin := time.Now()
	fields, err := b.wire.ForceRelease(t.Context(), "k", false)
	if err != nil || len(fields) != 1 || fields[0] != lettucecompat.NewField(a.cfg.ClientID, o.g.n) {
		t.Fatalf("%v, %v", fields, err)
	}
	if l := <-lost; l.Reason != "forced" { // the message is a hint: a renewal has asked
		t.Errorf("lost: %s", l.Reason)
	}
	next := <-got
	if d := time.Since(begin); !pace.Within(d, 2*time.Second) {
		t.Errorf("after %v", d)
	}
	mustRelease(t, next)
	o.Exit(t.Context())
}
