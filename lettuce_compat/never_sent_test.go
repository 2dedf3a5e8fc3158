package lettucecompat_test

import (
	"cmp"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

var errNo = errors.New("no")

// refusing is a hook that refuses what is to be sent: in one of the ways that a hook can.
type refusing struct {
	on      bool
	takes   bool  // it reads the arguments first, as a tracing hook does
	after   bool  // it refuses what was sent already
	with    error // errNo if nil
	quietly bool  // of a pipeline: it says so on no command
}

func (r *refusing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !r.on {
			return next(ctx, cmd)
		}
		if r.takes {
			_ = cmd.Args()
		}
		if r.after {
			_ = next(ctx, cmd)
		}
		return cmp.Or(r.with, errNo)
	}
}

func (r *refusing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !r.on {
			return next(ctx, cmds)
		}
		if r.after {
			_ = next(ctx, cmds)
		}
		for _, cmd := range cmds {
			if r.takes {
				_ = cmd.Args()
			}
			if !r.quietly {
				cmd.SetErr(errNo)
			}
		}
		return errNo
	}
}

// limiter is a circuit breaker of go-redis.
type limiter struct{ open bool }

func (l *limiter) Allow() error {
	if l.open {
		return errNo
	}
	return nil
}
func (l *limiter) ReportResult(error) {}

// everything sends one command of each kind and returns how it ended.
func everything(c *lettucecompat.Client) map[string]struct {
	o      lettucecompat.Outcome
	sentAt time.Time
	err    error
} {
	type ended = struct {
		o      lettucecompat.Outcome
		sentAt time.Time
		err    error
	}
	a := c.Do(ctx, asks("k", 1))
	w := c.Extend(ctx, synced("held", 3), 0) // a pipeline, or a connection of its own
	r := c.Do(ctx, gives("held", 3))
	turn := gives("held", 3)
	turn.Want = 1
	e := c.Do(ctx, turn)
	n := c.Renew(ctx, []lettucecompat.Renewal{{Key: "held", Field: me(3), Lease: time.Minute}}, 0)[0]
	s := c.Status(ctx, []lettucecompat.Query{{Key: "held", Field: me(3)}}, 0)[0]
	return map[string]ended{
		"acquire": {a.Outcome, time.Time{}, a.Err}, "renew with replicas": {w.Outcome, w.SentAt, w.Err},
		"release": {r.Outcome, time.Time{}, r.Err}, "yield": {e.Outcome, time.Time{}, e.Err},
		"renew": {n.Outcome, n.SentAt, n.Err}, "status": {s.Outcome, time.Time{}, s.Err},
	}
}

// What arises before a command is handed to the socket had no effect, and is known to have
// had none.
func TestWire_I2_NeverSentIsFailed(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]func(o *redis.Options, h *refusing, l *limiter) (begin func(b *bed)){
		"hook": func(_ *redis.Options, h *refusing, _ *limiter) func(*bed) { return func(*bed) { h.on = true } },
		"hook that says nothing on the commands": func(_ *redis.Options, h *refusing, _ *limiter) func(*bed) {
			h.quietly = true
			return func(*bed) { h.on = true }
		},
		"limiter": func(o *redis.Options, _ *refusing, l *limiter) func(*bed) {
			o.Limiter = l
			return func(*bed) { l.open = true }
		},
		"no answer to the greeting": func(o *redis.Options, _ *refusing, _ *limiter) func(*bed) {
			o.ReadTimeout = 100 * time.Millisecond
			return func(b *bed) { b.net.CloseAll(); b.net.HoldReplies() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, l := &refusing{}, &limiter{}
				var begin func(*bed)
				b := onMini(t, func(o *redis.Options) { begin = strike(o, h, l) })
				b.rdb.AddHook(h)
				c := b.client(t)
				b.put(t, "held", hash{me(3): "1"}, time.Minute)
				warm(t, c)
				begin(b)
				for what, got := range everything(c) {
					if got.o != failed || lettucecompat.Classify(got.err) != lettucecompat.ClassUnreachable || !got.sentAt.IsZero() {
						t.Errorf("%s: %v, sent at %v, %v (%v), want failed, never sent", what, got.o, got.sentAt, got.err, lettucecompat.Classify(got.err))
					}
				}
				b.wantHash(t, "k", hash{})
				b.wantHash(t, "held", hash{me(3): "1"})
			})
		})
	}
}

// What was, or may have been, sent is never said to have had no effect.
func TestWire_I2_SentIsNeverFailed(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]*refusing{
		"its answer is replaced by an error": {after: true},
		"its arguments were taken by a hook": {takes: true},
		"a hook could not dial elsewhere":    {after: true, with: &net.OpError{Op: "dial", Err: errNo}},
		"a hook was refused elsewhere":       {after: true, with: answer("READONLY elsewhere")},
		"a script is not known elsewhere":    {after: true, with: answer("NOSCRIPT elsewhere")},
	} {
		t.Run(name, func(t *testing.T) {
			b := onMini(t)
			b.rdb.AddHook(h)
			c := b.client(t)
			warm(t, c) // a connection is greeted through the hooks, too
			h.on = true
			for what, got := range everything(c) {
				if h.with != nil && what == "renew with replicas" {
					continue // go-redis sends it
				}
				if got.o != lettucecompat.OutcomeUnknown {
					t.Errorf("%s: %v, %v, want unknown", what, got.o, got.err)
				}
			}
		})
	}
	t.Run("its answer is lost", func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		for range 3 {
			warm(t, c)
			b.net.CutReplies(1, 0)
			got := c.Do(ctx, asks("k", 1))
			want(t, "outcome", got.Outcome, lettucecompat.OutcomeUnknown)
			b.wantHash(t, "k", hash{me(1): "1"})
		}
	})
}
