package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

type pipeliner = redis.Pipeliner

// inspect: what Redis says about a lock, asked from another process.
func inspect(s *stage) {
	a, _ := s.manager()
	b, _ := s.manager()
	cfg := anteroom.LockConfig{Key: s.key("k"), Fencing: true}
	info, err := b.Inspect(s.Context(), cfg.Key)
	s.ok(err)
	if info.Locked || info.Token != 0 {
		s.Fatalf("a key that was never used: %+v", info)
	}
	h := s.acquire(s.mutex(a, cfg))
	info, err = b.Inspect(s.Context(), cfg.Key)
	s.ok(err)
	if !info.Locked || len(info.Holders) != 1 || info.Holders[0].Field != h.Holder() || info.Holders[0].Client != a.ClientID() {
		s.Fatalf("%+v, want %s", info, h.Holder())
	}
	if info.TTL <= 0 || info.TTL > long || info.Token < tokenOf(h) {
		s.Fatalf("TTL %v, token %d", info.TTL, info.Token)
	}
	token := tokenOf(h)
	s.release(h)
	info, err = b.Inspect(s.Context(), cfg.Key)
	s.ok(err)
	if info.Locked || info.Token != token {
		s.Fatalf("after the release: %+v, want the token %d", info, token)
	}
}

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

// tooFewReplicas: refused with the reason, nothing remains, and the lock is free for callers that demand fewer.
func tooFewReplicas(s *stage) {
	m, _ := s.manager()
	s.release(s.acquire(s.mutex(m, anteroom.LockConfig{Key: s.key("warm")}))) // connected, the scripts loaded
	cfg := anteroom.LockConfig{Key: s.key("k"), Replicas: s.d.Replicas + 1, LeaseTime: lease}
	h, err := s.mutex(m, cfg).TryAcquire(s.Context())
	for range 3 { // a busy machine may not answer in time, which is another error
		if errors.Is(err, anteroom.ErrUnavailable) {
			h, err = s.mutex(m, cfg).TryAcquire(s.Context())
		}
	}
	s.is(err, anteroom.ErrNotAcquired)
	s.is(err, lettucecompat.ErrReplicas)
	if h != nil {
		s.Fatal("a hold beside the error")
	}
	info, err := m.Inspect(s.Context(), cfg.Key)
	s.ok(err)
	if info.Locked {
		s.Fatalf("left behind: %+v", info)
	}
	s.until("the key is forgotten", func() bool { return len(m.Snapshot()) == 0 })
	cfg.Replicas = 0
	s.release(s.acquire(s.mutex(m, cfg)))
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
		cfg := anteroom.LockConfig{Key: s.keyInPart(i, n), LeaseTime: lease, Fencing: i%2 == 0}
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
		// Slots are shared evenly, and so are keys, give or take two at each border.
		if want := n / len(masters); locks < want-2 || locks > want+3 {
			s.Errorf("%d locks on one of %d masters", locks, len(masters))
		}
	}
	before := renewals.renewed()
	s.until("every lock is renewed twice", func() bool { return renewals.renewed() >= before+2*n })
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

// keyInPart returns a key in the i-th of n equal parts of the slots.
func (s *stage) keyInPart(i, n int) string {
	const slots = 16384
	for try := 0; ; try++ {
		key := s.key(fmt.Sprintf("%d-%d", i, try))
		if slot := int(crc16(key)) % slots; slot >= i*slots/n && slot < (i+1)*slots/n {
			return key
		}
	}
}

// crc16 is that of the Cluster's specification (XMODEM). The slot of a key without braces is computed from the whole
// key.
func crc16(text string) (crc uint16) {
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			high := crc&0x8000 != 0
			crc <<= 1
			if high {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// tokenOf returns the token of a hold, 0 without Fencing.
func tokenOf(h *anteroom.Hold) int64 {
	token, _ := h.Token()
	return token
}
