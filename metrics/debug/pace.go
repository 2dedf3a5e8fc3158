package debug

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// The bounds on the cost of all clients together (I6).
const (
	// costShare: after an answer that took t to make, none is made for nineteen times t.
	costShare = 20
	// maxPause bounds that pause, because it is derived from elapsed time, not from work: a process that was stopped in
	// the middle of an answer must not lose its page for hours.
	maxPause = time.Minute
	// maxWait bounds how long a request waits for its turn. The page's script gives up after 15 s.
	maxWait = 10 * time.Second
	// maxWaiting bounds the number of waiting requests. Each is a goroutine and a connection.
	maxWaiting = 64
)

// errBusy answers a request that has waited too long, or would be one too many.
var errBusy = errors.New("too many requests: the page may use at most a twentieth of a processor")

// answer is the result for a query.
type answer struct {
	q           query
	began       time.Time // nothing in it is older
	body        []byte
	contentType string
	err         error
}

// pace makes answers one at a time and so rarely that they cost at most a costShare-th of a processor, with any number
// of requests.
type pace struct {
	share   time.Duration // costShare, except in benchmarks
	turn    chan struct{} // capacity 1: a goroutine that has sent to it owns the fields below
	last    answer        // the last one, if a request was waiting when it was made
	next    time.Time     // none is made before that
	waiting atomic.Int32  // requests in get
}

// get returns an answer to q that was begun after the call: a new one, or that of another waiting request with the
// same query. It returns errBusy if there is none within maxWait, or ctx's error.
func (p *pace) get(ctx context.Context, q query, produce func(query) answer) (answer, error) {
	asked := time.Now()
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > maxWaiting {
		return answer{}, errBusy
	}
	limit := time.NewTimer(maxWait)
	defer limit.Stop()
	for {
		select {
		case p.turn <- struct{}{}:
		case <-limit.C:
			return answer{}, errBusy
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
		a, pause := p.inTurn(asked, q, produce)
		if pause <= 0 {
			return a, nil
		}
		paused := time.NewTimer(pause)
		select {
		case <-paused.C:
		case <-limit.C:
			paused.Stop()
			return answer{}, errBusy
		case <-ctx.Done():
			paused.Stop()
			return answer{}, ctx.Err()
		}
	}
}

// inTurn returns an answer, or how long until one may be made. The caller has taken the turn; inTurn gives it back,
// even if produce panics.
func (p *pace) inTurn(asked time.Time, q query, produce func(query) answer) (answer, time.Duration) {
	defer func() { <-p.turn }()
	if p.last.q == q && p.last.began.After(asked) {
		return p.last, 0
	}
	if pause := time.Until(p.next); pause > 0 {
		return answer{}, pause
	}
	p.last = answer{}
	began := time.Now()
	defer func() {
		now := time.Now()
		p.next = now.Add(min((p.share-1)*now.Sub(began), maxPause))
	}()
	a := produce(q)
	a.q, a.began = q, began
	if p.waiting.Load() > 1 {
		p.last = a
	}
	return a, 0
}

// retryAfter is in how many seconds the next answer may be made, at least 1.
func (p *pace) retryAfter() int {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		return max(1, int(math.Ceil(time.Until(p.next).Seconds())))
	default:
		return 1 // an answer is being made
	}
}
