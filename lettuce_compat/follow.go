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

// follower is about the question where the master is.
type follower struct {
	mu      sync.Mutex
	asks    chan struct{} // closed when the question that is under way is over; nil: none is
	waits   bool          // commands wait for it
	askedAt time.Time     // when it began
	usedAt  time.Time     // when the last command came
}

// follow asks, not too often, where a new connection would lead. Sentinel may have named another master while the old one, which is cut
// off from it, still answers us: go-redis leaves that immediately, and so must we. Commands go on meanwhile, but those after a pause
// wait for the answer, for a quarter of their time: the master may be well while Sentinels are not.
func (d *direct) follow(ctx context.Context, end time.Time) {
	f, now := &d.master, time.Now()
	f.mu.Lock()
	pause := now.Sub(f.usedAt) >= followEvery
	switch f.usedAt = now; {
	case f.askedAt.IsZero(): // this command connects
		f.askedAt = now
	case f.asks == nil && now.Sub(f.askedAt) >= followEvery:
		f.asks, f.waits, f.askedAt = make(chan struct{}), pause, now
		go d.askForMaster(f.asks)
	case f.asks != nil && pause:
		f.waits = true
	}
	asks := f.asks
	if !f.waits {
		asks = nil
	}
	f.mu.Unlock()
	if asks == nil {
		return
	}
	enough := time.NewTimer(min(d.c.opt.CommandTimeout, end.Sub(now)) / 4)
	defer enough.Stop()
	select {
	case <-asks:
	case <-ctx.Done():
	case <-enough.C: // nor do those that come now
		f.mu.Lock()
		f.waits = f.waits && f.asks != asks
		f.mu.Unlock()
	}
}

// askForMaster retires connections that lead elsewhere than a new one. It ends with go-redis' own time limits: after a shorter one go-redis
// would ask the same hung Sentinel again, and no other.
func (d *direct) askForMaster(done chan struct{}) {
	if nc, err := d.user.Options().Dialer(d.ctx, "tcp", failoverAddr); err == nil {
		d.retire(func(c net.Conn) bool { return c.RemoteAddr().String() == nc.RemoteAddr().String() })
		_ = nc.Close()
	}
	d.master.mu.Lock()
	defer d.master.mu.Unlock()
	d.master.asks, d.master.waits = nil, false
	close(done)
}
