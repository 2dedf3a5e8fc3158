package lock

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// rarely is a lease that nobody renews while a test runs, but for the first time.
func rarely(s *Settings) {
	s.Lease = Lease{For: 5 * time.Minute, Period: time.Minute, Margin: time.Second}
}

// S22: a lost message that another client waits costs a second, whoever comes and goes without Redis: writers, or who needs
// permits.
func TestShared_S22_ALostMessageBesideAnyKind(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]struct{ capacity, units int64 }{"writers": {0, writes}, "permits": {3, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, client := fresh(t)
			a, b := newShares(t, client(), v.capacity, rarely), newShares(t, client(), v.capacity, rarely)
			a.unsubscribed.Store(true)
			var all sync.WaitGroup
			stop := make(chan struct{})
			for range 2 { // one waits when the other leaves, so that the units stay
				all.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							s := a.mustTake(t, v.units)
							time.Sleep(time.Millisecond)
							mustGive(t, s)
						}
					}
				})
			}
			eventually(t, "the call lease was renewed", func() bool {
				for _, k := range a.All() {
					if g := k.Held(); g != nil && g.lease.Renewals() > 0 {
						return true
					}
				}
				return false
			})
			begin := time.Now()
			mustGive(t, b.mustTake(t, v.units))
			if d := time.Since(begin); !pace.Within(d, 3*time.Second) {
				t.Errorf("after %v", d)
			}
			close(stop)
			all.Wait()
		})
	}
}

// renewedBeside returns the result of a renewal of g whose answer comes after during has run.
func renewedBeside(t *testing.T, p *party, f *holdUp, g *Held, during func()) renewal.Result {
	t.Helper()
	end := f.hold(&f.answers)
	defer end()
	got := make(chan renewal.Result, 1)
	go func() { got <- p.renewUnits(context.Background(), []*Held{g}, 0)[0] }()
	eventually(t, "Redis has renewed it", func() bool { return f.held.Load() > 0 })
	during()
	end()
	return <-got
}

// M7: what a renewal finds gone is a loss only if no command was sent since. Otherwise its answer decides.
func TestShared_ARenewalBesideACommand(t *testing.T) {
	t.Parallel()
	for name, sends := range map[string]bool{"a command was sent": true, "none was sent": false} {
		t.Run(name, func(t *testing.T) {
			_, client := fresh(t)
			rdb, c, f := client(), client(), &holdUp{}
			c.AddHook(f)
			p := newShares(t, c, 0, rarely)
			s := p.mustTake(t, 1)
			eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
			rdb.Del(t.Context(), "k")
			r := renewedBeside(t, p, f, s.g, func() {
				if k := s.g.k; sends {
					k.mu.Lock()
					k.l.number.Add(1)
					k.conv, _, _ = k.conv.Next(conversation.Demand{Keep: 1, Want: 2}, k.l.number.Load(), k.l.moment())
					k.mu.Unlock()
				}
			})
			if r.Gone == sends || r.Renewed {
				t.Errorf("%+v", r)
			}
			k := s.g.k
			if sends { // its answer decides
				k.handle(conversation.Event{Kind: conversation.Lost, N: k.conv.LastCommand().N})
			} else {
				s.g.gone(byTracking, nil)
			}
			eventually(t, "it is lost", func() bool { return s.Loss() != nil })
			s.Exit(context.Background())
		})
	}
}

// A failover has lost that some permits were given back: the next renewal finds them, and they go back again. So others do not
// wait for as long as somebody of this process holds any.
func TestShared_AFailoverThatLacksAGiveBack(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p, q := newShares(t, client(), 5, rarely), newShares(t, client(), 5, rarely)
	keeps, gives := p.mustTake(t, 3), p.mustTake(t, 2)
	eventually(t, "the call lease was renewed", func() bool { return keeps.g.lease.Renewals() > 0 })
	before := rdb.HGetAll(t.Context(), "k").Val()
	mustGive(t, gives)
	eventually(t, "2 are free", func() bool {
		k := keeps.g.k
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.conv.Units == 3 && !k.conv.Unanswered()
	})
	rdb.HSet(t.Context(), "k", before)
	keeps.g.lease.Hurry()
	eventually(t, "they go back again", func() bool { // before another client says that it waits
		for field, record := range rdb.HGetAll(t.Context(), "k").Val() {
			if words := strings.Fields(record); field != ":" && len(words) == 5 && words[1] == "3" { // number, units, until, ...
				return true
			}
		}
		return false
	})
	mustGive(t, q.mustTake(t, 2))
	if l := keeps.Err(); l != nil {
		t.Error(l)
	}
	mustGive(t, keeps)
}

// In an outage nobody asks each second whether another client waits: the renewals have their pauses.
func TestShared_NoQuestionsInAnOutage(t *testing.T) {
	t.Parallel()
	p, f := heldUp(t, rarely)
	k := p.Key("k", p.set)
	defer k.Done()
	for range 2 { // the gate is open from the second reader on
		if err := k.Enter(t.Context(), 0, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the call lease was renewed", func() bool { return k.Held().lease.Renewals() > 0 })
	failing := make(chan struct{})
	close(failing)
	f.commands.Store(&failing)
	k.Held().lease.Hurry()
	eventually(t, "the renewal fails", func() bool { return !k.Held().lease.Healthy() })
	tries := f.held.Load()
	for begin := time.Now(); time.Since(begin) < 3*time.Second; time.Sleep(10 * time.Millisecond) {
		if k.Join() {
			k.Leave(1, 0)
		}
	}
	if n := f.held.Load() - tries; n > 1 { // the next try is due after a quarter of the period
		t.Errorf("%d more commands in 3 s", n)
	}
	f.commands.Store(nil)
	k.Held().lease.Hurry()
	k.Leave(1, 0)
	k.Leave(1, 0)
}
