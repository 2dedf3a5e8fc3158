package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// tally is what an outsider knows of one lock.
type tally struct {
	mu      sync.Mutex
	t       *testing.T
	live    map[*anteroom.Hold]string
	tickets map[anteroom.Ticket]time.Time // a good one: until when
	max     int64
	counts  map[string]int
}

func (l *tally) in(h *anteroom.Hold, who string, resumed anteroom.Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[who[3:]]++
	for other, name := range l.live {
		if other.Err() == nil && h.Err() == nil {
			l.t.Errorf("%v: %s beside %s", time.Now(), who, name)
		}
	}
	for ticket, until := range l.tickets {
		if ticket != resumed && time.Until(until) > time.Second && h.Err() == nil {
			l.t.Errorf("%v: %s beside a ticket that counts for %v", time.Now(), who, time.Until(until))
		}
	}
	delete(l.tickets, resumed)
	if token := tokenOf(h); resumed == "" && h.Err() == nil {
		if token <= l.max {
			l.t.Errorf("%v: %s: token %d after %d", time.Now(), who, token, l.max)
		}
		l.max = max(token, l.max)
	}
	l.live[h] = who
}

func (l *tally) out(h *anteroom.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, h)
}

// Three processes acquire, lock, try, detach and resume at random, over a network that loses and delays answers: nobody is in
// beside another or a good ticket, tokens grow, a good ticket is resumed, and at the end nothing is left and the lock can be had.
func TestTaking_AtRandom_Lab(t *testing.T) {
	for seed := range uint64(2) {
		for _, faults := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, faults %v", seed, faults), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) { takeAtRandom(t, s, seed, faults) })
			})
		}
	}
}

func takeAtRandom(t *testing.T, s *embedded, seed uint64, faults bool) {
	l := &tally{t: t, live: map[*anteroom.Hold]string{}, tickets: map[anteroom.Ticket]time.Time{}, counts: map[string]int{}}
	cfg := anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true, Fair: seed%2 == 1}}
	passed := make(chan anteroom.Ticket, 100)
	var all sync.WaitGroup
	end := time.Now().Add(60 * time.Second)
	var nets []*faultnet.Network
	var managers []*anteroom.Manager
	for i := range 3 {
		net := s.network()
		net.PromptMessages()
		net.Latency(time.Millisecond, 3*time.Millisecond, seed*3+uint64(i))
		nets = append(nets, net)
		m, _ := manager(t, s.clientOver(net), cfg)
		managers = append(managers, m)
	}
	for i, m := range managers {
		for j := range 3 {
			r := rand.New(rand.NewPCG(seed, uint64(i*10+j)))
			all.Go(func() {
				mu := m.Mutex("k")
				for time.Now().Before(end) {
					time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
					ctx, cancel := context.WithTimeout(bg, time.Duration(1+r.IntN(4000))*time.Millisecond)
					who := fmt.Sprintf("%d.%d", i, j)
					hold := func(h *anteroom.Hold) {
						time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
						if r.IntN(40) == 0 {
							time.Sleep(3 * time.Second)
						}
						l.out(h)
						if r.IntN(4) > 0 {
							_ = h.Release(bg)
							return
						}
						d := time.Duration(2+r.IntN(10)) * time.Second
						at := time.Now()
						ticket, err := h.Detach(bg, d)
						if err == nil {
							l.mu.Lock()
							l.counts["detach"]++
							l.tickets[ticket] = at.Add(d)
							l.mu.Unlock()
						}
						if ticket != "" {
							passed <- ticket
						}
					}
					switch n := r.IntN(10); {
					case n < 4:
						var opts []anteroom.AcquireOption
						if r.IntN(4) == 0 {
							opts = append(opts, anteroom.Note("n"))
						} else if r.IntN(6) == 0 {
							opts = append(opts, anteroom.Lease(3*time.Second))
						}
						if h, err := mu.Acquire(ctx, opts...); err == nil {
							l.in(h, who+"acquire", "")
							hold(h)
						}
					case n < 5:
						if h, err := mu.TryAcquire(ctx); err == nil {
							l.in(h, who+"try", "")
							hold(h)
						}
					default:
						select {
						case ticket := <-passed:
							l.mu.Lock()
							until, good := l.tickets[ticket]
							l.mu.Unlock()
							h, err := mu.Resume(ctx, ticket)
							if err == nil {
								l.in(h, who+"resume", ticket)
								hold(h)
								break
							}
							l.mu.Lock()
							delete(l.tickets, ticket)
							l.mu.Unlock()
							if good && time.Until(until) > time.Second && errors.Is(err, anteroom.ErrNotHeld) {
								t.Errorf("%v: %s: a ticket for another %v: %v; Redis has %v", time.Now(), who, time.Until(until), err, s.holders("k"))
							}
						default:
						}
					}
					cancel()
				}
			})
		}
	}
	stop := make(chan struct{})
	if faults {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 99))
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(200+r.IntN(1500)) * time.Millisecond):
				}
				fates := []faultnet.Fate{
					faultnet.Lost, faultnet.Swallowed, faultnet.Shot,
					faultnet.Late(time.Duration(r.IntN(3000)) * time.Millisecond),
				}
				texts := []string{"anteroom:line:{k}", "ticket.", takeText, "release"}
				nets[r.IntN(len(nets))].OnRequest(texts[r.IntN(len(texts))], 1, fates[r.IntN(len(fates))])
			}
		})
	}
	time.Sleep(time.Until(end))
	close(stop)
	all.Wait()
	for _, net := range nets {
		net.Heal()
	}
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	for i, m := range managers {
		start := time.Now()
		h, err := m.Mutex("k").Acquire(ctx)
		if err != nil {
			t.Errorf("a stall: process %d after %v: %v; Redis has %v, line %v", i, time.Since(start), err, s.holders("k"), s.spots("k"))
			continue
		}
		ok(t, h.Release(bg))
	}
	time.Sleep(40 * time.Second)
	s.nothing(t, "k")
	l.mu.Lock()
	t.Log(l.counts)
	l.mu.Unlock()
}

// Goroutines of three processes seize, acquire and lock at random: nobody waits for ever, nothing is left.
func TestTaking_SeizeAtRandom_Lab(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				end := time.Now().Add(30 * time.Second)
				var all sync.WaitGroup
				var managers []*anteroom.Manager
				for i := range 3 {
					net := s.network()
					net.PromptMessages()
					net.Latency(time.Millisecond, 3*time.Millisecond, seed*3+uint64(i))
					m, _ := manager(t, s.clientOver(net), anteroom.Config{})
					managers = append(managers, m)
					for j := range 4 {
						r := rand.New(rand.NewPCG(seed, uint64(i*10+j)))
						all.Go(func() {
							mu := m.Mutex("k")
							for time.Now().Before(end) {
								time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
								start := time.Now()
								ctx, cancel := context.WithTimeout(bg, 10*time.Second)
								var h *anteroom.Hold
								var err error
								op := r.IntN(8)
								switch {
								case op < 2:
									h, err = mu.Seize(ctx)
								case op < 6:
									h, err = mu.Acquire(ctx)
								default:
									mu.Lock()
									time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
									mu.Unlock()
								}
								if took := time.Since(start); took > 5*time.Second {
									t.Errorf("op %d took %v: %v", op, took, err)
								}
								if h != nil {
									time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
									_ = h.Release(bg)
								}
								cancel()
							}
						})
					}
				}
				all.Wait()
				for _, m := range managers {
					h := acquire(t, m.Mutex("k"))
					ok(t, h.Release(bg))
				}
				time.Sleep(5 * time.Second)
				s.nothing(t, "k")
			})
		})
	}
}
