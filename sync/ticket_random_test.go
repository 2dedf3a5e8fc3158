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

// Holds that are acquired, released, detached and resumed by four processes while answers are lost: nobody is ever in
// beside another, tokens never fall, and nothing is left.
func TestTicket_AtRandom(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				r := rand.New(rand.NewPCG(seed, 1))
				var mu sync.Mutex // of what follows
				var in *anteroom.Hold
				var newest int64
				entered := func(h *anteroom.Hold) {
					mu.Lock()
					defer mu.Unlock()
					if in != nil && in != h && in.Err() == nil {
						t.Errorf("%s is in beside %s", h.Holder(), in.Holder())
					}
					if tokenOf(h) < newest {
						t.Errorf("token %d after %d", tokenOf(h), newest)
					}
					in, newest = h, tokenOf(h)
				}
				random := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return r.IntN(n)
				}
				tickets := make(chan anteroom.Ticket, 100)
				counts := map[string]int{}
				count := func(what string) {
					mu.Lock()
					defer mu.Unlock()
					counts[what]++
				}
				var all sync.WaitGroup
				for range 4 {
					net := s.network()
					m, _ := manager(t, s.clientOver(net), anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true, LeaseTime: 6 * time.Second}})
					for range 2 {
						all.Go(func() {
							for range 30 {
								if random(3) == 0 {
									fate := []faultnet.Fate{faultnet.Lost, faultnet.Swallowed, faultnet.Late(time.Duration(random(3000)) * time.Millisecond)}[random(3)]
									net.OnRequest([]string{"ticket.", "EVALSHA", "evalsha"}[random(3)], 1, fate)
								}
								ctx, cancel := context.WithTimeout(bg, time.Duration(1+random(5000))*time.Millisecond)
								var h *anteroom.Hold
								var err error
								select {
								case ticket := <-tickets:
									if h, err = m.Mutex("k").Resume(ctx, ticket); err == nil {
										count("resumed")
									} else if !errors.Is(err, anteroom.ErrNotHeld) && !errors.Is(err, anteroom.ErrUnavailable) && !errors.Is(err, anteroom.ErrNotAcquired) {
										t.Errorf("resume: %v", err)
									}
								default:
									h, err = m.Mutex("k").Acquire(ctx)
								}
								cancel()
								if err != nil {
									count("not in")
									continue
								}
								entered(h)
								time.Sleep(time.Duration(random(300)) * time.Millisecond)
								if random(2) == 0 {
									_ = h.Release(bg)
									continue
								}
								if ticket, err := h.Detach(bg, time.Duration(100+random(4000))*time.Millisecond); ticket != "" {
									count("detached")
									tickets <- ticket
								} else if !errors.Is(err, anteroom.ErrLost) {
									t.Errorf("detach: %v", err)
								}
							}
						})
					}
				}
				all.Wait()
				time.Sleep(time.Minute)
				s.nothing(t, "k")
				if counts["resumed"] == 0 {
					t.Errorf("%v", counts)
				}
				t.Log(counts)
			})
		})
	}
}
