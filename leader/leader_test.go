package leader_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/leader"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
	"github.com/anteroom/anteroom/sync/observe"
)

const key = "leader:test"

// candidate is an Election whose terms are seen, and can be ended.
type candidate struct {
	*leader.Election
	began chan context.Context // one for each term
	leave chan error           // what lead returns; it returns nil when its context has ended
	ended chan error           // what Run returned
	stop  context.CancelFunc
}

// stand makes a candidate and runs it.
func stand(t *testing.T, m *anteroom.Manager) *candidate {
	t.Helper()
	e, err := leader.New(m, anteroom.LockConfig{Key: key, Name: "leader"}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &candidate{Election: e, began: make(chan context.Context, 10), leave: make(chan error), ended: make(chan error, 1), stop: cancel}
	go func() {
		c.ended <- e.Run(ctx, func(ctx context.Context) error {
			c.began <- ctx
			select {
			case err := <-c.leave:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	synctest.Wait()
	return c
}

// leads fails the test unless exactly c has begun a term since the last call, and returns its context.
func (c *candidate) leads(t *testing.T, others ...*candidate) context.Context {
	t.Helper()
	synctest.Wait()
	for _, o := range others {
		if len(o.began) > 0 || o.Leading() {
			t.Fatal("another leads, too")
		}
	}
	select {
	case term := <-c.began:
		if !c.Leading() {
			t.Error("a term has begun, and Leading is false")
		}
		return term
	default:
		t.Fatal("it was not elected")
		return nil
	}
}

// bubble runs f with two Managers on one server, as two processes have them.
func bubble(t *testing.T, f func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		lt := locktest.NewManager(t, anteroom.Config{})
		f(t, lt, lt.Another(anteroom.Config{}).Manager)
	})
}

func TestLeader_I1_OneTermAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager) {
		a, b := stand(t, lt.Manager), stand(t, other)
		a.leads(t, b)
		l, err := b.Leader(t.Context())
		if l.ID != lt.ClientID() || l.Note != lt.ClientID() || l.TTL <= 0 || err != nil {
			t.Errorf("the leader is %+v (%v), want %q", l, err, lt.ClientID())
		}
		time.Sleep(5 * time.Minute)
		if len(b.began) > 0 || !a.Leading() {
			t.Error("later another leads")
		}
		a.leave <- nil // it resigns
		b.leads(t, a)
		if err := <-a.ended; err != nil {
			t.Errorf("Run of the one that resigned: %v", err)
		}
		b.stop()
		<-b.ended
		if l, err := b.Leader(t.Context()); l.ID != "" || err != nil {
			t.Errorf("the leader is %+v (%v), want nobody", l, err)
		}
	})
}

func TestLeader_I2_TheTermsContextEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(lt *locktest.Manager, c *candidate)
		want error
	}{
		"lost":         {func(lt *locktest.Manager, _ *candidate) { lt.Lose(key) }, anteroom.ErrLost},
		"stepped down": {func(_ *locktest.Manager, c *candidate) { c.StepDown() }, leader.ErrSteppedDown},
		"shut down":    {func(_ *locktest.Manager, c *candidate) { c.stop() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager) {
				a := stand(t, lt.Manager)
				term := a.leads(t)
				c.end(lt, a)
				<-term.Done()
				if cause := context.Cause(term); !errors.Is(cause, c.want) {
					t.Errorf("the cause is %v, want %v", cause, c.want)
				}
				a.stop()
				<-a.ended
			})
		})
	}
}

func TestLeader_I3_ShutdownHandsOver(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager) {
		a, b := stand(t, lt.Manager), stand(t, other)
		a.leads(t, b)
		start := time.Now()
		a.stop()
		if err := <-a.ended; err != nil {
			t.Errorf("Run after its context ended: %v", err)
		}
		b.leads(t, a)
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the next one was elected after %v", took)
		}
		failed := errors.New("no money")
		go func() { b.leave <- failed }()
		if err := <-b.ended; !errors.Is(err, failed) {
			t.Errorf("Run says %v, want what lead returned", err)
		}
	})
}

func TestLeader_I4_StandsAgainBehindTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager) {
		a, b := stand(t, lt.Manager), stand(t, other)
		a.leads(t, b)
		if b.StepDown() || !a.StepDown() { // in this order: b may lead as soon as a has stepped down
			t.Error("StepDown does not know who leads")
		}
		b.leads(t, a)
		lt.Lose(key)
		synctest.Wait()
		a.leads(t, b) // it stood before b did again
		a.stop()
		<-a.ended
		b.leads(t, a)
		b.StepDown()
		b.leads(t, a) // nobody else
		b.stop()
		<-b.ended
	})
}

func TestLeader_I5_StandingByIsNoLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var long int
		lt := locktest.NewManager(t, anteroom.Config{OnEvent: func(e observe.Event) {
			if e.Kind == observe.EventLongWait {
				long++
			}
		}})
		release := lt.TakeBy(key)
		a := stand(t, lt.Manager)
		time.Sleep(5 * time.Minute)
		if long > 0 {
			t.Errorf("%d long waits were reported", long)
		}
		release()
		time.Sleep(2 * time.Second)
		a.leads(t)
		a.stop()
		<-a.ended
	})
}

// A process that was stopped past its lease asks its context first: that has ended, whichever timer comes first.
func TestLeader_I2_TheTermEndsByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lt := locktest.NewManager(t, anteroom.Config{})
		resigned := errors.New("resigned")
		for i := range 20 { // which timer comes first is chance
			e, err := leader.New(lt.Manager, anteroom.LockConfig{Key: fmt.Sprint(key, i), RenewalTime: -1}, "")
			if err != nil {
				t.Fatal(err)
			}
			terms := 0
			err = e.Run(t.Context(), func(term context.Context) error {
				hold, _ := anteroom.HoldFrom(term)
				if terms++; terms == 2 {
					return resigned
				}
				time.Sleep(time.Until(hold.Deadline()))
				if term.Err() == nil {
					t.Error("the lease has ended, and the context says nothing")
				}
				if e.StepDown() {
					t.Error("one that no longer leads steps down")
				}
				return term.Err()
			})
			if terms != 2 || err != resigned {
				t.Errorf("Run says %v after %d terms, want a second one after the loss", err, terms)
			}
		}
	})
}

func TestLeader_I3_ShutdownWhileRedisIsUnreachable(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager) {
		a, b := stand(t, lt.Manager), stand(t, other)
		a.leads(t, b)
		lt.Down()
		for _, c := range []*candidate{b, a} {
			c.stop()
			if err := <-c.ended; err != nil {
				t.Errorf("Run says %v, want nil: the release continues in the background", err)
			}
		}
		lt.Up()
		time.Sleep(5 * time.Second)
		if l, err := b.Leader(t.Context()); l.ID != "" || err != nil {
			t.Errorf("the leader is %+v (%v), want nobody", l, err)
		}
	})
}

func TestLeader_I4_AnOutageIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager) {
		a, b := stand(t, lt.Manager), stand(t, other)
		term := a.leads(t, b)
		lt.Down()
		time.Sleep(5 * time.Minute)
		if !errors.Is(context.Cause(term), anteroom.ErrLost) || a.Leading() || len(a.began)+len(b.began) > 0 {
			t.Errorf("without Redis the term continues (%v), or another has begun", context.Cause(term))
		}
		lt.Up()
		time.Sleep(5 * time.Second)
		if a.Leading() == b.Leading() || len(a.began)+len(b.began) != 1 {
			t.Errorf("with Redis back %d terms began, want 1", len(a.began)+len(b.began))
		}
		for _, c := range []*candidate{a, b} {
			c.stop()
			<-c.ended
		}
	})
}

// Candidates of one process are no different from those of several.
func TestLeader_I4_StandsAgainBehindTheOthersOfItsProcess(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager) {
		a, b := stand(t, lt.Manager), stand(t, lt.Manager)
		for range 5 {
			a.leads(t, b)
			time.Sleep(time.Second)
			a.StepDown()
			a, b = b, a
		}
		a.leads(t, b)
		for _, c := range []*candidate{b, a} {
			c.stop()
			<-c.ended
		}
	})
}

// Who observes hears of each term when it begins and when it ends, without asking meanwhile, and of a leader that died.
func TestLeader_Observe(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager) {
		looker, err := leader.New(lt.Another(anteroom.Config{}).Manager, anteroom.LockConfig{Key: key}, "")
		if err != nil {
			t.Fatal(err)
		}
		type seen struct {
			leader.Leader
			at time.Time
		}
		all := make(chan seen, 20)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for l, err := range looker.Observe(ctx) {
				if err != nil {
					t.Error(err)
				}
				all <- seen{l, time.Now()}
			}
		}()
		sees := func(id, note string) {
			t.Helper()
			for {
				select {
				case s := <-all:
					if s.ID == id && s.Note == "" && note != "" {
						continue // between the grant and its note
					}
					if s.ID != id || s.Note != note || time.Since(s.at) > 10*time.Millisecond {
						t.Errorf("%+v, %v ago; want %q %q", s.Leader, time.Since(s.at), id, note)
					}
				case <-time.After(5 * time.Millisecond):
					t.Errorf("nothing; want %q %q", id, note)
				}
				return
			}
		}
		sees("", "")
		time.Sleep(time.Second)
		a := stand(t, lt.Manager)
		a.leads(t)
		sees(lt.ClientID(), lt.ClientID())
		b := stand(t, other)
		time.Sleep(3 * time.Minute)
		if len(all) > 0 {
			t.Errorf("%d changes of nothing: %+v", len(all), <-all)
		}
		a.leave <- nil
		b.leads(t, a)
		<-a.ended
		sees(other.ClientID(), other.ClientID())
		b.leave <- nil
		<-b.ended
		sees("", "")
		stop()
		<-done
	})
}
