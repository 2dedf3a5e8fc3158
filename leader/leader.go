package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// ErrSteppedDown is the cause with which the context of a term ends after StepDown.
var ErrSteppedDown = errors.New("leader: stepped down")

// Election is one candidate. All methods are safe for concurrent use, but Run runs once at a time.
type Election struct {
	m    *anteroom.Manager
	mu   *anteroom.Mutex
	note string

	term struct {
		sync.Mutex
		hold *anteroom.Hold // nil: it does not lead
		end  func()         // of its candidature, with ErrSteppedDown; called under the mutex
	}
}

// New returns a candidate for the leadership that cfg.Key names. cfg is that of the lock: LeaseTime is how long the
// others wait after a leader has died, and Name its class in metrics. LongWait is not used, since a candidate may
// wait for ever, and Fair is set: so must another Mutex of this key in m have it. The error is that of
// Manager.NewMutex.
//
// note is what others learn of this candidate while it leads, see Leader: an address where it can be reached, say. It is
// bounded as anteroom.Note is, which Run says, and defaults to the Manager's ClientID.
func New(m *anteroom.Manager, cfg anteroom.LockConfig, note string) (*Election, error) {
	cfg.LongWait = -1
	cfg.Fair = true // else a leader that steps down may overtake a candidate that waits in the same process
	mu, err := m.NewMutex(cfg)
	if err != nil {
		return nil, err
	}
	if mu.Config().MinHold > 0 {
		return nil, &anteroom.Error{
			Op: "new election", Key: cfg.Key, Outcome: observe.OutcomeMistake,
			Err: fmt.Errorf("%w: MinHold would keep the next leader waiting after the last one has resigned", anteroom.ErrConfig),
		}
	}
	return &Election{m: m, mu: mu, note: cmp.Or(note, m.ClientID())}, nil
}

// Run waits until this process is elected, and calls lead for the term. The context of the term carries the Hold
// of the lock (anteroom.HoldFrom). When lead returns, the term is over and the first candidate in line is
// elected immediately.
//
// If the term's context ended by a loss, Run waits in line again as soon as lead has returned, and drops what it
// returned. After StepDown it does so, too, unless lead returned an error that, or a part of which (errors.Join), has
// another reason than StepDown: then Run returns it. Otherwise it returns what lead returned, nil included: a leader
// resigns by returning. When ctx ends, Run returns nil, or the error of lead if that has another reason than ctx. It
// returns an *anteroom.Error if the lock cannot be used (ErrConfig, ErrClosed); it waits while Redis is unreachable.
// What only the release finds out, after lead has returned, is reported as an event and not here: a loss, or an outcome
// that Redis has not confirmed (the release continues in the background, and the lease ends). If lead panics,
// leadership is handed over and the panic continues.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	for {
		if again, err := e.campaign(ctx, lead); !again {
			return err
		}
	}
}

// campaign is one candidature of Run: it waits until this process is elected, and for the end of the term. It reports
// whether Run begins another one, or what Run returns.
func (e *Election) campaign(ctx context.Context, lead func(ctx context.Context) error) (again bool, err error) {
	// What StepDown ends is the context that Do is given. One made of the term's would not compare with the clock,
	// as that does for a process that was stopped past its lease.
	candidature, end := context.WithCancelCause(ctx)
	defer end(nil)
	var elected, steppedDown bool // steppedDown: of this candidature; ctx may be the term of another Election
	var work, ended error
	refused := e.mu.Do(candidature, func(term context.Context) error {
		elected = true
		hold, _ := anteroom.HoldFrom(term)
		e.leads(hold, func() { steppedDown = true; end(ErrSteppedDown) })
		defer e.leads(nil, nil)
		work = lead(term)
		ended = context.Cause(term)
		return nil
	}, anteroom.Note(e.note))
	if !elected {
		if ctx.Err() != nil {
			return false, nil
		}
		return false, refused
	}
	// The end of the term decides about a loss, not the lock's last word: work that was notified may have ended before
	// the lease did, and work that was not notified has resigned.
	if e.lost(ended) || steppedDown && (work == nil || comesOf(work, context.Canceled, ErrSteppedDown)) {
		return true, nil // and where ctx has ended, too, the next candidature ends immediately
	}
	over := ctx.Err()
	if end, has := ctx.Deadline(); has && over == nil && !time.Now().Before(end) {
		over = context.DeadlineExceeded // the term's own timer was first
	}
	if over != nil && comesOf(work, over, context.Cause(ctx)) {
		return false, nil
	}
	return false, work
}

// lost reports whether a term that ended with cause has lost this lock, and not another that Run's own context depends
// on.
func (e *Election) lost(cause error) bool {
	of, is := errors.AsType[*anteroom.Error](cause)
	return is && errors.Is(of, anteroom.ErrLost) && of.Key == e.mu.Key()
}

// comesOf reports whether err has no other reason than that a context has ended, with over and cause: of an error that
// joins others, all must come of it. One of the lock library is one failure, which it words by several errors.
func comesOf(err, over, cause error) bool {
	if !errors.Is(err, over) && (cause == nil || !errors.Is(err, cause)) {
		return false
	}
	for ; err != nil; err = errors.Unwrap(err) {
		switch e := err.(type) { //nolint:errorlint // one layer at a time
		case *anteroom.Error:
			return true
		case interface{ Unwrap() []error }:
			return !slices.ContainsFunc(e.Unwrap(), func(part error) bool { return !comesOf(part, over, cause) })
		}
	}
	return true
}

// leads notes whose term it is; nil: not ours.
func (e *Election) leads(hold *anteroom.Hold, end func()) {
	e.term.Lock()
	defer e.term.Unlock()
	e.term.hold, e.term.end = hold, end
}

// StepDown ends the term of this process: its context ends with ErrSteppedDown, and when lead has returned the first
// candidate in line is elected. It reports whether this process led, and does not wait for lead. Without another
// candidate this one is elected again.
func (e *Election) StepDown() bool {
	e.term.Lock()
	defer e.term.Unlock()
	if !e.leading() {
		return false
	}
	e.term.end()
	return true
}

// Leading reports whether this process leads now, by the clock: also where it was stopped past its lease and nobody
// has notified it yet.
func (e *Election) Leading() bool {
	e.term.Lock()
	defer e.term.Unlock()
	return e.leading()
}

// leading is Leading for callers that have locked term.
func (e *Election) leading() bool { return e.term.hold != nil && e.term.hold.Held() }

// Leader is who leads.
type Leader struct {
	// ID is the Manager's ClientID of that process ("<host>-<pid>-…" unless Config.ClientID says otherwise; the whole field
	// in Redis of a program that names its clients in another way), and "" while nobody leads.
	ID string
	// Note is what that candidate has said of itself, see New: "" until its first moment is over, or where it is no
	// Election.
	Note string
	// TTL is for how long Redis keeps its lease without a renewal.
	TTL time.Duration
}

// Leader asks Redis who leads. It changes nothing, and any process may ask, also one that is no candidate. The answer
// may be out of date when it arrives. The error is that of Manager.Inspect.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	info, err := e.m.Inspect(ctx, e.mu.Key())
	if err != nil {
		return Leader{}, err
	}
	return leaderOf(info), nil
}

func leaderOf(info anteroom.Info) Leader {
	if len(info.Holders) == 0 {
		return Leader{}
	}
	h := info.Holders[0]
	return Leader{cmp.Or(h.Client, h.Field), h.Note, info.TTL}
}

// Observe yields who leads now, and then each change: another leader, a note, or that nobody leads. It learns of them as
// Manager.Watch does: by messages, and of a leader that died when its lease ends. While Redis cannot be asked it yields
// the error, once. It ends with ctx, or when the loop does. Any process may observe, also one that is no candidate.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var last Leader
		first, failed := true, false
		for info, err := range e.m.Watch(ctx, e.mu.Key()) {
			now := leaderOf(info)
			same := now.ID == last.ID && now.Note == last.Note
			switch {
			case err != nil && failed && errors.Is(err, anteroom.ErrUnavailable), err == nil && !first && !failed && same:
				continue
			case err == nil:
				first, last = false, now
			}
			failed = err != nil
			if !yield(now, err) {
				return
			}
		}
	}
}
