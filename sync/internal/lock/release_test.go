package lock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

type afterHook struct{ after func(cmd redis.Cmder) }

func (afterHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h afterHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.after(cmd)
		return err
	}
}

func (afterHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A release that finds nothing is a loss, also where somebody comes while its answer is on its way.
func TestLate_P8_AReleaseOfALostLockBesideAnAcquire(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, c := client(), client()
	var after atomic.Pointer[func()] // the next script
	c.AddHook(afterHook{func(cmd redis.Cmder) {
		if do := after.Load(); do != nil && cmd.Name() == "evalsha" && after.CompareAndSwap(do, nil) {
			(*do)()
		}
	}})
	p, q := newParty(t, c, longLease), newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	eventually(t, "renewed", func() bool { return o.g.lease.Renewals() > 0 })
	rdb.Del(t.Context(), "k")
	thief := q.mustAcquire(t, "k")
	next := make(chan *Owner, 1)
	after.Store(new(func() {
		go func() { next <- p.mustAcquire(t, "k") }()
		eventually(t, "somebody asks", func() bool { return o.g.k.q.Len() == 1 })
	}))
	if r := o.Exit(t.Context()); r.Lost == nil {
		t.Errorf("released: %+v", r)
	}
	mustRelease(t, thief)
	mustRelease(t, <-next)
}

// What lands after the lease and finds nothing says nothing about a deletion.
func TestLate_AReleaseThatLandsAfterTheLease(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, c := client(), client()
	before := beforeScripts(c)
	lease := stretchedBy(Lease{For: 600 * time.Millisecond, Period: 200 * time.Millisecond, Margin: 60 * time.Millisecond})
	p := newParty(t, c, func(s *Settings) { s.Lease = lease })
	k := p.Key("k", p.set)
	defer k.Done()
	lease.Period = -1
	o := &Owner{Stay: queue.Stay{Kind: queue.Refusable}, Holder: notify(func(l *Loss) { t.Errorf("notified: %v", l) })}
	if err := k.Acquire(t.Context(), o, &lease); err != nil {
		t.Fatal(err)
	}
	before.next(func() {
		eventually(t, "the lease has ended", func() bool { return rdb.Exists(context.Background(), "k").Val() == 0 })
	})
	time.Sleep(time.Until(o.Deadline()) - lease.For/6) // the release has to land within the limit of a command
	if err := o.Err(); err != nil {
		t.Fatal(err)
	}
	if r := o.Exit(t.Context()); r.Lost == nil || r.Lost.Reason != renewal.ReasonFixed {
		t.Errorf("%+v", r)
	}
}

// A release that finds nothing once a message has said that the lock was forced says so, too.
func TestLate_AForcedReleaseBesideAnExit(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	rdb.Del(t.Context(), "k")
	o.g.force.Store(int64(p.now()))
	if r := o.Exit(t.Context()); r.Lost == nil || r.Lost.Reason != renewal.ReasonForced {
		t.Errorf("%+v", r)
	}
}

// Whose waiter gives up after a hand-off has had the lock, and does not lose it by the release.
func TestLate_ALossOfAnUnownedGrant(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	g := o.g
	o.abandon()
	exits(t, o, false, queue.Final)
	rdb.Del(t.Context(), "k")
	<-g.giveBack()
	p.rep.mu.Lock()
	defer p.rep.mu.Unlock()
	if n := len(p.rep.losses); n != 1 || p.rep.losses[0].AnyOwner() != nil {
		t.Errorf("%d losses: %+v", n, p.rep.losses)
	}
}

// A release after the deadline whose answer is lost is a loss, though what is asked next says that nothing is left of it.
func TestLate_AReleaseAfterTheDeadlineWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), func(s *Settings) {
		s.Lease = stretchedBy(Lease{For: 300 * time.Millisecond, Period: 100 * time.Millisecond, Margin: 30 * time.Millisecond})
	})
	o := p.mustAcquire(t, "k")
	open := busyLoop(t, p) // nobody concludes a loss meanwhile, as in a process that was stopped
	time.Sleep(time.Until(o.Deadline()) + 50*time.Millisecond)
	// Owner.Exit and Held.release, whose command is lost.
	g, k := o.g, o.g.k
	exits(t, o, false, queue.Final)
	b := g.endLease(o, k.l.leases.Now())
	k.mu.Lock()
	k.q.Shrink(0)
	k.freeing = b
	s := k.nextLocked()
	b.n = s.N
	k.mu.Unlock()
	k.apply(conversation.Event{Kind: conversation.Silence, N: s.N}, &s, &lettucecompat.Answer{Err: context.Canceled})
	k.l.landed()
	k.l.unregister(g, nil)
	mustRelease(t, p.mustAcquire(t, "k"))
	if r := k.resultOf(b, ReleaseResult{Unknown: true, Err: context.Canceled}); r.Lost == nil {
		t.Errorf("released: %+v", r)
	}
	o.abandon()
	open()
}

// A release after the deadline is none of a lost lock where its own answer says that the lock was still there.
func TestLate_AReleaseAfterTheDeadlineThatFindsTheLock(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	defer o.abandon()
	g := o.g
	exits(t, o, false, queue.Final)
	b := g.endLease(o, g.k.l.leases.Now()+time.Hour)
	g.release(b)
	if r := g.k.resultOf(b, ReleaseResult{}); !b.late || r.Lost != nil || r.Err != nil {
		t.Errorf("late %v: %+v", b.late, r)
	}
}

// An exit that ends the lease just after a confirmation of the place has found the unit gone is one of a lost lock.
func TestLate_AReleaseOfAUnitThatAConfirmationHasFoundGone(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) { longLease(s); s.MinHold = time.Minute })
	o := p.mustAcquire(t, "k")
	k := o.g.k
	rdb.Del(t.Context(), "k")
	k.mu.Lock() // Key.apply of the answer to a confirmation whose call came first, in two parts: the exit comes between
	var f conversation.Effect
	if k.conv, f = k.conv.Handle(conversation.Event{Kind: conversation.HasNot, N: k.conv.LastCommand().N}, k.l.moment()); f != conversation.Vanished {
		t.Error(f)
	}
	k.mu.Unlock()
	if r := o.Exit(t.Context()); r.Lost == nil || r.Lost.Reason != renewal.ReasonGone {
		t.Errorf("%+v", r)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.vanished(o.g)
	}()
	k.sendAsync() // others use the conversation meanwhile
	<-done
	k.sendAsync()
	eventually(t, "settled", func() bool { return p.unsettled.Load() == 0 }) // nothing is there that MinHold would keep
}

// A release that is void changes nothing. What is repeated finds that the lock is lost once the other record is gone.
func TestLate_AReleaseThatIsVoid(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	other := lettucecompat.NewField(o.g.k.l.cfg.ClientID, o.g.n+1e9)
	rdb.HSet(t.Context(), "k", other, 1)
	rdb.HDel(t.Context(), "k", o.g.Field())
	if _, err := p.acquire(t.Context(), "k", queue.Try); !errors.Is(err, ErrRefused) {
		t.Errorf("a try beside an owner: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { rdb.HDel(context.Background(), "k", other) })
	if r := o.Exit(t.Context()); r.Lost == nil || r.Lost.Reason != renewal.ReasonGone {
		t.Errorf("%+v", r)
	}
}

// A try whose ask is void does not wait for what comes of it.
func TestLate_ATryThatIsVoid(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), longLease)
	mustRelease(t, p.mustAcquire(t, "k"))
	rdb.HSet(t.Context(), "k", lettucecompat.NewField(p.cfg.ClientID, p.number.Load()+1e9), 1)
	_, err := p.acquire(t.Context(), "k", queue.Try)
	if _, is := errors.AsType[*AnswerError](err); !is {
		t.Errorf("%v", err)
	}
	rdb.Del(t.Context(), "k")
}
