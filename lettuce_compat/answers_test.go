package lettucecompat_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// nonsense replaces the answers to scripts by one that no script of ours gives.
type nonsense struct{ answer any }

func (n *nonsense) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n *nonsense) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		n.spoil(cmd)
		return err
	}
}

func (n *nonsense) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			n.spoil(cmd)
		}
		return err
	}
}

func (n *nonsense) spoil(cmd redis.Cmder) {
	c, takes := cmd.(interface{ SetVal(any) })
	if name := cmd.Name(); takes && cmd.Err() == nil && (name == "evalsha" || name == "eval" || name == "hexists") {
		c.SetVal(n.answer)
	}
}

// An answer that does not match the command is none: 1 says nothing about a token, and is no answer to a give-back.
func TestAnAnswerThatDoesNotFitIsUnknown(t *testing.T) {
	t.Parallel()
	hook := &nonsense{}
	b := onMini(t)
	b.rdb.AddHook(hook)
	c := b.client(t)
	for answer, matches := range map[int64][]bool{1: {true, false, false}, 0: {false, false, true}, -1: {false, false, true}, -2: {false, false, true}, -3: {false, false, false}} {
		hook.answer = answer
		for i, s := range []lettucecompat.Command{asks("k", 1), fenced("k", 2), gives("k", 1)} {
			want(t, fmt.Sprint(answer, " to ", i), c.Do(ctx, s).Outcome == ok, matches[i])
		}
	}
}

// An answer that cannot be understood is the answer of a script that ran: what it did is
// unknown. It never says that a field is gone, or that it is there.
func TestAnAnswerThatCannotBeUnderstoodIsUnknown(t *testing.T) {
	t.Parallel()
	hook := &nonsense{}
	b := onMini(t)
	b.rdb.AddHook(hook)
	c := b.client(t)
	for _, answer := range []any{
		nil, "text", int64(-7), int64(7),
		[]any{},
		[]any{"text"},
		[]any{int64(-7)},
		[]any{[]any{}},
		[]any{"text", "text"},
		[]any{"has"},
		[]any{"waits"},
		[]any{"nothing"},
		[]any{"refused"},
		[]any{"void", int64(1)},
		[]any{"has", int64(1), int64(0), "", int64(0)},
		[]any{"has", int64(1), int64(0), "x", int64(0), "1700000000000000"},
		[]any{"has", int64(1), int64(0), "", int64(0), "x"},
		[]any{"has", "1", int64(0), "", int64(0), "1700000000000000"},
		[]any{"waits", int64(1), int64(-1), "", int64(0)},
		[]any{"waits", int64(1), int64(0), "", int64(1)},
		[]any{"waits", int64(1), int64(0), "", int64(-3)},
		[]any{"waits", int64(1), int64(0), int64(0), int64(0)},
		[]any{"refused", int64(1), int64(0), "", int64(0), "a note", "x"},
		[]any{[]any{"1", "1", "1"}},
		[]any{"hash", "1", []any{}, "", "", int64(0)},
	} {
		t.Run(fmt.Sprint(answer), func(t *testing.T) {
			hook.answer = answer
			unknown := func(what string, o lettucecompat.Outcome, err error) {
				t.Helper()
				if o != lettucecompat.OutcomeUnknown || err == nil || !strings.Contains(err.Error(), "malformed") {
					t.Errorf("%s: %v, %v", what, o, err)
				}
			}
			for _, s := range []lettucecompat.Command{fenced("k", 1), gives("k", 1)} {
				got := c.Do(ctx, s)
				unknown("state", got.Outcome, got.Err)
			}
			// A text is the error of one key of a batch.
			a, _ := answer.([]any)
			if _, isText := append(a, nil)[0].(string); len(a) != 1 || !isText {
				renewed := c.Renew(ctx, []lettucecompat.Renewal{{Key: "k", Field: me(1), Lease: time.Minute}}, 0)[0]
				unknown("renew", renewed.Outcome, renewed.Err)
				status := c.Status(ctx, []lettucecompat.Query{{Key: "k", Field: me(1)}}, 0)[0]
				unknown("status", status.Outcome, status.Err)
			}
			if info, err := c.Inspect(ctx, "k", false); err == nil {
				t.Errorf("inspect: %+v", info)
			}
			if _, is := answer.([]any); !is {
				if fields, err := c.ForceRelease(ctx, "k", false); err == nil {
					t.Errorf("force: %v", fields)
				}
			}
		})
	}
}

// A probe distinguishes a subscription that is not there yet, and a caller that leaves, from a
// connection that delivers nothing.
func TestAProbeAccusesNobodyTooEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		b.net.Refuse()
		c.Subscribe()
		synctest.Wait()
		if err := c.Probe(ctx); !errors.Is(err, lettucecompat.ErrNotSubscribed) {
			t.Fatalf("while it is being made: %v", err)
		}
		b.net.Heal()
		time.Sleep(time.Minute)
		if err := c.Probe(ctx); err != nil || !lettucecompat.Up(c) {
			t.Fatal(err)
		}
		// Its caller leaves while the message is on its way: nothing was found out, and the
		// connection stays.
		leaving, leave := context.WithCancel(ctx)
		dials := b.net.Dials()
		b.net.Delay(200 * time.Millisecond)
		time.AfterFunc(100*time.Millisecond, leave)
		if err := c.Probe(leaving); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		b.net.Heal()
		time.Sleep(time.Minute)
		if n := b.net.Dials(); n > dials+1 || !lettucecompat.Up(c) { // one for the pool at most
			t.Fatalf("%d dials after %d, up: %v", n, dials, lettucecompat.Up(c))
		}
	})
}

// The words that logs, labels and people see.
func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		fmt.Sprint(lettucecompat.OutcomeOK, lettucecompat.OutcomeRefused, lettucecompat.OutcomeGone, lettucecompat.OutcomeFailed, lettucecompat.OutcomeUnknown, lettucecompat.Outcome(99)): "ok refused gone failed unknown invalid",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	b := onMini(t)
	reply := b.client(t).Do(ctx, asks("anteroom:fence:k", 1))
	if !errors.Is(reply.Err, lettucecompat.ErrReservedKey) || !lettucecompat.Permanent(reply.Err) || !strings.Contains(reply.Err.Error(), "reserved") {
		t.Errorf("%+v", reply)
	}
	b.net.Refuse()
	b.net.CloseAll()
	if err := b.client(t).Ping(ctx, 0); lettucecompat.Classify(err) != lettucecompat.ClassUnreachable {
		if op, is := errors.AsType[*net.OpError](err); !is || op.Op != "dial" {
			t.Errorf("%v is %v", err, lettucecompat.Classify(err))
		}
	}
}

// Where publishing is refused there is nothing to probe, and no reason to drop a
// connection that may well deliver.
func TestAProbeThatMayNotPublishAccusesNobody(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	c.Subscribe()
	eventually(t, "the own channel is confirmed", func() bool { return c.Probe(ctx) == nil && lettucecompat.Up(c) })
	if err := b.raw.Do(ctx, "acl", "setuser", "default", "-publish").Err(); err != nil {
		t.Fatal(err)
	}
	dials := b.net.Dials()
	if err := c.Probe(ctx); err != nil {
		t.Fatal(err)
	}
	if !lettucecompat.Up(c) || b.net.Dials() != dials {
		t.Fatalf("up %v, %d dials after %d", lettucecompat.Up(c), b.net.Dials(), dials)
	}
}
