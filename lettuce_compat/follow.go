package lettucecompat

import (
	"context"
	"net"
	"sync"
	"time"
)

// failoverAddr is what go-redis calls the address of a master that Sentinel names.
const failoverAddr = "FailoverClient"

// followEvery is the least time between two questions where the master is.
const followEvery = time.Second

// follower knows how old Sentinel's word is.
type follower struct {
	mu      sync.Mutex
	asks    chan struct{} // closed when the question that is under way is over; nil: none is
	askedAt time.Time
	saidAt  time.Time // when it was answered last
	silent  bool      // the last question had no answer, or has none for longer than a command waits for it
}

// follow asks, not too often, where a new connection would lead. Sentinel may have named another master while the old one, which is cut
// off from it, still answers us: go-redis leaves that immediately, and so must we. Others go on meanwhile, but what comes after a pause
// waits for the answer: not for long, and not if the last question has none, since the master may be well while Sentinels are not.
func (d *direct) follow(ctx context.Context) {
	f, now := &d.master, time.Now()
	f.mu.Lock()
	if f.saidAt.IsZero() { // this command connects
		f.askedAt, f.saidAt = now, now
	}
	if f.asks == nil && now.Sub(f.askedAt) >= followEvery {
		f.asks, f.askedAt = make(chan struct{}), now
		go d.askForMaster(f.asks)
	}
	asks := f.asks
	if f.silent || now.Sub(f.saidAt) < 2*followEvery {
		asks = nil
	}
	f.mu.Unlock()
	if asks == nil {
		return
	}
	enough := time.NewTimer(d.c.opt.CommandTimeout / 4)
	defer enough.Stop()
	select {
	case <-asks:
	case <-ctx.Done():
	case <-enough.C:
		f.mu.Lock()
		f.silent = f.asks == asks || f.silent
		f.mu.Unlock()
	}
}

// askForMaster retires connections that lead elsewhere than a new one.
func (d *direct) askForMaster(done chan struct{}) {
	ctx, cancel := context.WithTimeout(d.ctx, d.c.patience())
	defer cancel()
	nc, err := d.user.Options().Dialer(ctx, "tcp", failoverAddr)
	if err == nil {
		d.retire(func(c net.Conn) bool { return c.RemoteAddr().String() == nc.RemoteAddr().String() })
		_ = nc.Close()
	}
	d.master.mu.Lock()
	defer d.master.mu.Unlock()
	if d.master.silent = err != nil; err == nil {
		d.master.saidAt = time.Now()
	}
	d.master.asks = nil
	close(done)
}
