package lock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// holdUp is a hook of a client: it holds up commands or answers, or keeps commands back until they fail.
type holdUp struct {
	sends, answers, commands atomic.Pointer[chan struct{}]
	held                     atomic.Int64
}

func (f *holdUp) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *holdUp) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return f.around(func() error { return next(ctx, cmd) })
	}
}

func (f *holdUp) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return f.around(func() error { return next(ctx, cmds) })
	}
}

func (f *holdUp) around(send func() error) error {
	if c := f.commands.Load(); c != nil {
		f.held.Add(1)
		<-*c
		return errCut
	}
	if c := f.sends.Load(); c != nil {
		f.held.Add(1)
		<-*c
	}
	err := send()
	if c := f.answers.Load(); c != nil {
		f.held.Add(1)
		<-*c
	}
	return err
}

// hold begins to hold up, and returns what ends that.
func (f *holdUp) hold(what *atomic.Pointer[chan struct{}]) (end func()) {
	block := make(chan struct{})
	what.Store(&block)
	return sync.OnceFunc(func() {
		what.Store(nil)
		close(block)
	})
}

// heldUp returns a client of shared locks whose answers can be held up.
func heldUp(t *testing.T, change func(*Settings)) (*party, *holdUp) {
	_, client := fresh(t)
	c, f := client(), &holdUp{}
	c.AddHook(f)
	return newShares(t, c, 0, change), f
}

func brief(s *Settings) {
	s.Lease = stretchedBy(Lease{For: 1200 * time.Millisecond, Period: 400 * time.Millisecond, Margin: 400 * time.Millisecond})
	s.Timeout = pace.Scale(1500 * time.Millisecond)
}

func long(s *Settings) {
	s.Lease = stretchedBy(Lease{For: 30 * time.Second, Period: 10 * time.Second, Margin: time.Second})
	s.Timeout = pace.Scale(300 * time.Millisecond)
}

// P9: the answer to a renewal that comes after the deadline lets nobody in while an owner that was notified may react, and
// Unlock finds who is inside.
func TestShared_P9_ALateAnswer_Lab(t *testing.T) {
	t.Parallel()
	for _, kind := range []queue.Kind{queue.Refusable, queue.NoNotify} {
		p, f := heldUp(t, brief)
		k := p.Key("k", p.set)
		lost := make(chan *Loss, 1)
		w := withUnits(&Owner{Stay: queue.Stay{Need: writes, Kind: kind}, Holder: notify(func(l *Loss) { lost <- l })})
		if err := k.Acquire(t.Context(), w, nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the call lease was renewed", func() bool { return w.g.lease.Renewals() > 0 })
		end := f.hold(&f.answers)
		got := make(chan *Owner, 1)
		go func() { got <- p.mustTake(t, writes) }()
		l := <-lost
		end()
		select {
		case next := <-got:
			if left := time.Until(l.Deadline.Add(p.set.Lease.Margin)); left > 0 {
				t.Errorf("another one is in %v before the first must have stopped", left)
			}
			mustGive(t, next)
			w.Exit(t.Context())
		case <-time.After(time.Until(l.Deadline.Add(p.set.Lease.Margin / 2))):
			if !kind.CanNotify() && k.Units().Writes != w {
				t.Error("Unlock does not find the writer")
			}
			w.Exit(t.Context())
			mustGive(t, <-got)
		}
		k.Done()
	}
}

// A release behind a command that is under way says how it ended.
func TestShared_P8_AReleaseBehindAnother(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{true, false} {
		p, f := heldUp(t, long)
		time.Sleep(3 * linger)
		w := p.mustTake(t, writes)
		eventually(t, "the call lease was renewed", func() bool { return w.g.lease.Renewals() > 0 })
		end := f.hold(&f.commands)
		w.g.lease.Hurry()
		eventually(t, "a renewal is under way", func() bool { return f.held.Load() > 0 })
		begin, result := time.Now(), make(chan ExitResult, 1)
		go func() { result <- w.Exit(context.Background()) }()
		if !silent { // the renewal fails, and so does the release that follows it
			k := w.g.k
			eventually(t, "the writer has left", func() bool { return k.q.Demand().Used == 0 })
			failing := make(chan struct{})
			close(failing)
			old := f.commands.Swap(&failing)
			close(*old)
			end = func() { f.commands.Store(nil) }
		}
		r := <-result
		if d := time.Since(begin); r.Err == nil || !pace.Within(d, 3*p.set.Timeout) {
			t.Errorf("silent %v, after %v: %+v", silent, d, r)
		}
		end()
	}
}

// P8: a yield whose answer is lost has taken effect if its place is called: who has left by it is told so.
func TestShared_P8_ACallShowsThatAYieldTookEffect(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &holdUp{}
	c.AddHook(f)
	p, q := newShares(t, c, 0, long), newShares(t, client(), 0, long)
	k := p.Key("k", p.set)
	defer k.Done()
	s := p.mustTake(t, writes)
	other, next, out := make(chan *Owner, 1), make(chan *Owner, 1), make(chan ExitResult, 1)
	go func() { other <- q.mustTake(t, writes) }()
	awaitTurnOver(t, k)
	go func() { next <- p.mustTake(t, writes) }()
	eventually(t, "another one waits here", func() bool { return k.q.Demand().Waiting == 1 })
	end := f.hold(&f.answers)
	defer end()
	go func() { out <- s.Exit(context.Background()) }()
	mustGive(t, <-other)
	w := <-next // by the call
	if r := <-out; r.Lost != nil || r.Err != nil {
		t.Errorf("%+v", r)
	}
	end()
	w.Exit(context.Background())
}

// S22, S29: the end of a turn that comes between a message and what is made of it is noticed.
func TestShared_S29_TheEndOfATurnIsNoticed(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	a, b := newShares(t, client(), 0, func(s *Settings) { long(s); s.MaxHandoffTime = 600 * time.Millisecond }), newShares(t, client(), 0, long)
	k := a.Key("k", a.set)
	defer k.Done()
	for range 2 {
		if err := k.Enter(t.Context(), 0, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the call lease was renewed", func() bool { return k.Held().lease.Renewals() > 0 })
	a.unsubscribed.Store(true) // the test hears for it
	got := make(chan *Owner, 1)
	go func() { got <- b.mustTake(t, writes) }()
	awaitPlace(t, client(), 1)
	k.mu.Lock()
	n := k.u.lastShown
	k.mu.Unlock()
	k.notified(n)
	time.Sleep(k.q.Demand().TurnEnds - k.l.now() + 20*time.Millisecond) // the timer of that moment has fired
	k.sendAsync()
	k.Leave(1, 0)
	k.Leave(1, 0)
	select {
	case s := <-got:
		mustGive(t, s)
	case <-time.After(pace.Scale(3 * time.Second)):
		t.Error("the writer waits though nobody is inside")
		mustGive(t, <-got)
	}
}

// A try whose answer leaves too little ends, though the next command has no answer.
func TestShared_S24_ATryWithALateAnswer(t *testing.T) {
	t.Parallel()
	p, f := heldUp(t, func(s *Settings) { s.Timeout = pace.Scale(1500 * time.Millisecond) })
	mustGive(t, p.mustTake(t, writes)) // the script is there
	eventually(t, "it listens", p.wire.Listening)
	eventually(t, "nothing is left", func() bool { return len(p.All()) == 0 })
	end := f.hold(&f.answers)
	got := make(chan error, 1)
	go func() { _, err := p.take(t.Context(), writes, queue.Try); got <- err }()
	eventually(t, "it asks", func() bool { return f.held.Load() > 0 })
	time.Sleep(1200 * time.Millisecond) // more than half of the call lease
	cut := f.hold(&f.commands)
	defer cut()
	end()
	select {
	case err := <-got:
		if !errors.Is(err, errLate) {
			t.Error(err)
		}
	case <-time.After(pace.Scale(8 * time.Second)):
		t.Error("the try waits")
	}
}

// Close beside several that are parked in Lock ends: nobody is let in who would only leave.
func TestShared_CloseBesideManyInLock(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	parked, unpark := context.WithCancel(t.Context())
	var all sync.WaitGroup
	s := p.mustTake(t, writes)
	for i := range 8 {
		all.Go(func() {
			if i%2 == 0 {
				_ = k.Acquire(parked, withUnits(&Owner{Stay: queue.Stay{Need: writes, Kind: queue.NoNotify}, Holder: notify(func(*Loss) {})}), nil)
			} else if k.Enter(parked, 0, 1, 0) == nil {
				t.Error("a reader came in after Close")
				k.Leave(1, 0)
			}
		})
	}
	eventually(t, "all wait", func() bool { return k.q.Demand().Waiting == 8 })
	p.BeginClose()
	mustGive(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), pace.Hang)
	defer cancel()
	begin := time.Now()
	if lost, unsettled := p.Settle(ctx); len(lost)+unsettled > 0 {
		t.Errorf("after %v: %d lost, %d unsettled", time.Since(begin), len(lost), unsettled)
	}
	unpark()
	all.Wait()
	k.Done()
}

// A renewal of a grant that has ended is none, and says nothing of the next one.
func TestShared_ARenewalOfAGrantThatHasEnded(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	s := p.mustTake(t, 1)
	mustGive(t, s)
	next := p.mustTake(t, writes)
	if r := p.renewUnits(t.Context(), []*Held{s.g}, 0)[0]; r != (renewal.Result{}) {
		t.Errorf("%+v", r)
	}
	mustGive(t, next)
}

// A release of units of which too little was left for a grant, and which were removed, finds no grant.
func TestShared_AReleaseOfWhatWasNoGrant(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &holdUp{}
	c.AddHook(f)
	p := newShares(t, c, 0, func(s *Settings) { s.Timeout = pace.Scale(1500 * time.Millisecond) })
	rdb := client()
	mustGive(t, p.mustTake(t, writes)) // the script is there
	eventually(t, "it listens", p.wire.Listening)
	assertGone(t, rdb, p) // the key is another one from here on, without a grant
	end := f.hold(&f.answers)
	got := make(chan error, 1)
	go func() { _, err := p.take(t.Context(), writes, queue.Try); got <- err }()
	eventually(t, "the units are its", func() bool { return rdb.Exists(t.Context(), "k").Val() == 1 })
	time.Sleep(1200 * time.Millisecond) // more than half of the call lease
	rdb.Del(t.Context(), "k")
	end()
	if err := <-got; !errors.Is(err, errLate) {
		t.Error(err)
	}
	assertGone(t, rdb, p)
}

// gaveUpUnits is gaveUpPlace for units.
func gaveUpUnits(t *testing.T) (p *party, k *Key, n uint64) {
	_, client := fresh(t)
	p = newShares(t, client(), 0, long)
	q := newShares(t, client(), 0, long)
	s := q.mustTake(t, writes)
	k = p.Key("k", p.set)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		gone <- k.Acquire(ctx, withUnits(&Owner{Stay: queue.Stay{Need: writes, Kind: queue.Refusable}, Holder: notify(func(*Loss) {})}), nil)
	}()
	awaitPlace(t, client(), 1)
	eventually(t, "its place is known", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		n = k.conv.LastCommand().N
		return k.conv.State == conversation.Waiting
	})
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("admitted")
	}
	eventually(t, "settled", func() bool { return p.unsettled.Load() == 0 })
	mustGive(t, s)
	return p, k, n
}

// What Close has seen settled stays so, as that of a Mutex does: see TestLate_ACallAfterClose.
func TestShared_ACallAfterClose(t *testing.T) {
	p, k, n := gaveUpUnits(t)
	p.BeginClose()
	if lost, unsettled := p.Settle(t.Context()); len(lost)+unsettled > 0 {
		t.Fatalf("%d lost, %d unsettled", len(lost), unsettled)
	}
	number := p.number.Load()
	p.Heard(lettucecompat.Message{Kind: lettucecompat.MessageCalled, Key: "k", N: n, Units: writes})
	if p.unsettled.Load() != 0 || p.number.Load() != number {
		t.Errorf("%d unsettled, %d commands", p.unsettled.Load(), p.number.Load()-number)
	}
	if k.Done(); !k.Over() {
		t.Error("the key stays in use")
	}
}

// A call that is taken in beside Close is cleaned up before that ends, though nothing was stated yet.
func TestShared_ACallBesideClose(t *testing.T) {
	p, k, n := gaveUpUnits(t)
	p.BeginClose()
	k.handle(conversation.Event{Kind: conversation.Called, N: n, Record: n, Units: writes, Lease: k.set.times.Call}) // as Locks.Heard does, before its sendAsync
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if lost, unsettled := p.Settle(ended); len(lost) != 0 || unsettled != 1 {
		t.Errorf("%d lost, %d unsettled", len(lost), unsettled)
	}
	k.sendAsync()
	if lost, unsettled := p.Settle(t.Context()); len(lost)+unsettled > 0 || p.unsettled.Load() != 0 {
		t.Errorf("%d lost, %d unsettled", len(lost), unsettled)
	}
	k.Done()
}

// A command about units that was overtaken before it was sent is not sent: its capacities are those of a later one by then.
func TestShared_AnOvertakenCommandIsNotSent(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	for _, kind := range []queue.Kind{queue.Refusable, queue.Refusable | queue.Try} {
		w := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: kind}}
		_, _, _ = k.enqueue(w)
		late := k.next()
		k.handle(conversation.Event{Kind: conversation.Silence, N: late.N})
		next := k.next()
		if e, a := k.ask(&late); e.Kind != conversation.Failed || a.Outcome != lettucecompat.OutcomeFailed || a.Err != nil {
			t.Errorf("it was sent: %+v", a)
		}
		k.send(late)
		k.send(next)
		if _, err := k.q.Park(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		k.out(func() { k.q.Leave(w.Stay) })
		eventually(t, "all is given back", func() bool { return p.unsettled.Load() == 0 && p.flying.Load() == 0 })
	}
	eventually(t, "all is given back", func() bool { return p.unsettled.Load() == 0 && p.flying.Load() == 0 })
}
