package anteroom_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// crowd is goroutines of several processes with several capacities, by every way in. Nobody is ever inside beside more than its own.
type crowd struct {
	t      *testing.T
	faults bool // of the network, each shorter than a lease
	mu     sync.Mutex
	inside map[int64]int64 // units by capacity
	used   int64
}

func (c *crowd) comes(of, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside[of] += n
	c.used += n
	for of, units := range c.inside {
		if units > 0 && c.used > of {
			c.t.Errorf("%d units inside, %d of them by who counts with %d", c.used, units, of)
		}
	}
}

func (c *crowd) leaves(of, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside[of] -= n
	c.used -= n
}

func (c *crowd) visit(m *anteroom.Manager, r *rand.Rand) {
	of := 2 + r.Int64N(4)
	s, n := m.Semaphore("k", of), 1+r.Int64N(of)
	ctx, cancel := context.WithTimeout(bg, time.Duration(1+r.IntN(30))*time.Millisecond)
	defer cancel()
	var h theHold
	var err error
	way := r.IntN(6)
	switch way {
	case 0:
		h, err = s.TryAcquire(bg, n)
	case 1:
		h, err = s.Acquire(ctx, n)
	case 2:
		err = s.Weighted().Acquire(ctx, n)
	case 3:
		err = s.Weighted().Acquire(bg, n)
	default:
		h, err = s.Acquire(bg, n)
	}
	if err != nil {
		if way > 2 && !c.faults {
			c.t.Error(err)
		}
		return
	}
	c.comes(of, n)
	time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
	if h != nil && h.Err() != nil {
		c.t.Error(h.Err())
	}
	c.leaves(of, n)
	if h == nil {
		s.Weighted().Release(n)
	} else if err := h.Release(bg); err != nil && !c.faults {
		c.t.Error(err)
	}
	time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
}

// disturb breaks a network again and again until stop is closed.
func disturb(n *faultnet.Network, r *rand.Rand, stop <-chan struct{}) {
	for {
		time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
		switch r.IntN(3) {
		case 0:
			n.BlackHole()
		case 1:
			n.Refuse()
			n.CloseAll()
		default:
			n.CloseAll()
		}
		time.Sleep(time.Duration(r.IntN(900)) * time.Millisecond)
		n.Heal()
		select {
		case <-stop:
			return
		default:
		}
	}
}

func (c *crowd) visits(s *embedded, seed uint64, rounds int) {
	var all, disturbers sync.WaitGroup
	stop := make(chan struct{})
	for i := range uint64(3) {
		n := s.network()
		m, _ := manager(c.t, s.clientOver(n), anteroom.Config{})
		if c.faults {
			disturbers.Go(func() { disturb(n, rand.New(rand.NewPCG(seed, i)), stop) })
		}
		for g := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, (i+1)<<8|g))
			all.Go(func() {
				for range rounds {
					c.visit(m, r)
				}
			})
		}
	}
	all.Wait()
	close(stop)
	disturbers.Wait()
	time.Sleep(2 * time.Minute) // a release that failed ends with its lease
	synctest.Wait()
	if s.Exists("k") || s.Exists(lineOf("k")) {
		c.t.Error("something is left")
	}
}

func TestCapacity_NobodySeesMoreThanItsOwn(t *testing.T) {
	for _, faults := range []bool{false, true} {
		t.Run(fmt.Sprintf("faults %v", faults), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				c := &crowd{t: t, faults: faults, inside: map[int64]int64{}}
				c.visits(s, 1, 12)
			})
		})
	}
}

func TestCapacity_NobodySeesMoreThanItsOwn_Lab(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				c := &crowd{t: t, faults: seed%2 > 0, inside: map[int64]int64{}}
				c.visits(s, seed, 40)
			})
		})
	}
}
