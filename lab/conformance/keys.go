package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

type pipeliner = redis.Pipeliner

// tokensGrow: from hold to hold, in this process and another, when the key is deleted under a holder, and when the
// fencing record is.
func tokensGrow(s *stage) {
	a, _ := s.manager()
	b, _ := s.manager()
	rdb := s.client()
	cfg := anteroom.LockConfig{Key: s.key("k"), Fencing: true, Fair: true, WatchdogPeriod: watch}
	mine, theirs := s.mutex(a, cfg), s.mutex(b, cfg)
	var last int64 // guarded by the lock
	grows := func(h *anteroom.Hold) {
		if tokenOf(h) <= last {
			s.Errorf("token %d after %d", tokenOf(h), last)
		}
		last = tokenOf(h)
	}
	var wg sync.WaitGroup
	for _, mu := range []*anteroom.Mutex{mine, mine, mine, theirs, theirs, theirs} {
		wg.Go(func() {
			for range 10 {
				h, err := mu.Acquire(context.Background())
				if err != nil {
					s.Error(err)
					return
				}
				grows(h)
				if err := h.Release(context.Background()); err != nil {
					s.Error(err)
				}
			}
		})
	}
	wg.Wait()
	// Without its record the server's clock decides, which must advance for that: a call that has crossed
	// an attempt, or an answer that was lost, has put the counter ahead by the tokens of a turn.
	s.ok(rdb.Del(s.Context(), fencePrefix+"{"+cfg.Key+"}").Err())
	for rdb.Time(s.Context()).Val().UnixMicro() <= last {
		time.Sleep(time.Millisecond)
	}
	h := s.acquire(mine)
	grows(h)
	s.removed(h, func() { s.ok(rdb.Del(s.Context(), cfg.Key).Err()) })
	for _, mu := range []*anteroom.Mutex{theirs, mine} {
		h := s.acquire(mu)
		grows(h)
		s.release(h)
	}
}

// replicasConfirm: a grant with Replicas is on that many replicas when it is answered.
func replicasConfirm(s *stage) {
	if s.d.Replicas == 0 {
		s.Skip("there is no replica that could confirm")
	}
	m, _ := s.manager()
	mu := s.mutex(m, anteroom.LockConfig{Key: s.key("k"), Replicas: s.d.Replicas, Fencing: true})
	for range 5 {
		h := s.acquire(mu)
		for _, c := range s.d.Copies(mu.Key()) {
			if !s.onReplica(c, mu.Key(), h.Holder()) {
				s.Fatal("a replica that confirmed does not have the grant")
			}
		}
		s.release(h)
	}
}

// onReplica reports whether a replica has the field.
func (s *stage) onReplica(c *redis.Client, key, field string) bool {
	s.Helper()
	var found *redis.BoolCmd
	_, err := c.Pipelined(s.Context(), func(p pipeliner) error {
		p.Do(s.Context(), "readonly") // a Cluster's replica answers only after this; others do not know it
		found = p.HExists(s.Context(), key, field)
		return nil
	})
	if found.Err() != nil {
		s.Fatal(err)
	}
	return found.Val()
}

// oddKeys: names that a naive rule for hash tags gets wrong, and others that break quoting or splitting. Each is a
// lock of its own with tokens, waiters and messages.
func oddKeys(s *stage) {
	a, _ := s.manager()
	b, _ := s.manager()
	for _, key := range []string{
		"a{b", "a}b", "x{}y", "{}x", "}{", "{", "}", "{}", "{}{t}", "a{t}b", "{t}", "{{t}}", "a{b}{c}", "a}b{c}", "a{}b{c}",
		"\x00\xff{\xfe", "with space", "line\r\nbreak", `"quoted" \ 'twice'`, "日本", "*", "a\x00b",
		strings.Repeat("k", 64<<10), strings.Repeat("{", 1000),
	} {
		cfg := anteroom.LockConfig{Key: s.own(key), Fencing: true}
		mine, theirs := s.mutex(a, cfg), s.mutex(b, cfg)
		h := s.acquire(mine)
		s.refused(theirs)
		waiter := s.acquired(theirs)
		s.until("the waiter stands", func() bool { return s.stands(key) })
		token := tokenOf(h)
		s.release(h)
		g := s.take(waiter)
		if tokenOf(g.hold) <= token {
			s.Fatalf("%.20q: token %d after %d", key, tokenOf(g.hold), token)
		}
		s.release(g.hold)
	}
}

// aHundredKeysOverAllSlots: locks of one process on all masters are granted, renewed in batches, refused to others,
// and handed over.
func aHundredKeysOverAllSlots(s *stage) {
	const n = 100
	a, renewals := s.manager()
	b, _ := s.manager()
	var holds []*anteroom.Hold
	var theirs []*anteroom.Mutex
	for i := range n {
		cfg := anteroom.LockConfig{Key: s.key(fmt.Sprint(i)), RenewalTime: stretched, Fencing: i%2 == 0} // a lease that outlasts a stall
		holds = append(holds, s.acquire(s.mutex(a, cfg)))
		theirs = append(theirs, s.mutex(b, cfg))
	}
	masters := s.d.Masters()
	for _, c := range masters {
		locks := 0
		for key := range s.keys(c) {
			if strings.HasPrefix(key, s.name) {
				locks++
			}
		}
		if locks < n/len(masters)/2 {
			s.Errorf("%d locks on one of %d masters", locks, len(masters))
		}
	}
	before := renewals.Load()
	s.until("every lock is renewed twice", func() bool { return renewals.Load() >= before+2*n })
	var waiters []<-chan grant
	for i, mu := range theirs {
		s.ok(holds[i].Err())
		s.refused(mu)
		waiters = append(waiters, s.acquired(mu))
	}
	for i, h := range holds {
		token := tokenOf(h)
		s.release(h)
		g := s.take(waiters[i])
		if i%2 == 0 && tokenOf(g.hold) <= token {
			s.Errorf("token %d after %d", tokenOf(g.hold), token)
		}
		s.release(g.hold)
	}
}

// tokenOf returns the token of a hold, 0 without Fencing.
func tokenOf(h *anteroom.Hold) int64 {
	token, _ := h.Token()
	return token
}
