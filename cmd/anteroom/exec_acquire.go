package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// cleanUpTime bounds a release and, if no release was needed, how long the tool continues to remove what it may have
// left in Redis. After that the lease removes it.
const cleanUpTime = 2 * time.Second

// commandTimeout bounds each answer of Redis to exec and lock; 0: as the library does. Tests put another here.
var commandTimeout time.Duration

// execution is one run of exec or lock, from the wait for the lock to its release.
type execution struct {
	flags       execFlags
	errs        *voice
	signals     chan os.Signal // those that end a process; all others too once the command starts
	key         string
	rdb         redis.UniversalClient
	m           *anteroom.Manager
	entry       entry         // to the lock
	eof         chan struct{} // closed at the end of standard input; nil if that ends nothing
	gaveUp      bool          // a release was not confirmed within cleanUpTime
	refused     atomic.Bool   // Redis has answered that somebody else has the lock
	unreachable atomic.Bool   // the last attempt to reach Redis failed
	waiting     atomic.Bool   // the first attempt is over, and its result does not end the run
}

// begin prepares a run; the caller ends it. Signals are caught before the lock can be held, so that every way out
// releases it.
func begin(cmd *cobra.Command, f execFlags, cfg anteroom.LockConfig) (*execution, error) {
	written, err := dialect(cmd)
	if err != nil {
		return nil, err
	}
	rdb, err := connect(cmd)
	if err != nil {
		return nil, err
	}
	x := &execution{flags: f, errs: newVoice(cmd.ErrOrStderr()), signals: make(chan os.Signal, 64), key: cfg.Key, rdb: rdb}
	x.m, err = anteroom.NewManager(rdb, anteroom.Config{
		Dialect: anteroom.Dialect(written), CommandTimeout: commandTimeout, Logger: slog.New(slog.DiscardHandler), OnEvent: x.event,
	})
	if err != nil {
		_ = rdb.Close()
		x.errs.close()
		return nil, err
	}
	if x.entry, err = f.entryTo(x.m, cfg); err != nil {
		x.end()
		return nil, err
	}
	// A pipe without a reader must not end this process before it has released the lock.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signal.Notify(x.signals, notIgnored(endingSignals)...)
	return x, nil
}

// end closes the Manager, which removes what a lost answer may have left in Redis, and writes what is left to say. A
// signal has its default effect again.
func (x *execution) end() {
	signal.Stop(x.signals)
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTime)
	defer cancel()
	if x.gaveUp {
		cancel()
	}
	_ = x.m.Close(ctx)
	x.errs.close()
	_ = x.rdb.Close()
}

// acquire waits for the lock as the flags say. Without a limit for the wait Redis must answer once at the start, so
// that a wrong address shows immediately and not never. With one it may come up meanwhile, as at boot, and the limit is
// for the first attempt too. An attempt that it cuts off may still be granted; end removes that.
func (x *execution) acquire(ctx context.Context) (*anteroom.Hold, error) {
	ctx, cancel := context.WithCancel(ctx)
	if x.flags.wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, x.flags.wait)
		defer stop()
	}
	caught := make(chan *exitError)
	go func() {
		select {
		case s := <-x.signals:
			cancel()
			caught <- ended(s)
		case <-ctx.Done():
			caught <- nil
		}
	}()
	began := time.Now()
	hold, err := x.entry.try(ctx)
	x.refused.Store(errors.Is(err, anteroom.ErrNotAcquired) && !errors.Is(err, context.DeadlineExceeded))
	silent := errors.Is(err, anteroom.ErrUnavailable) && x.flags.wait > 0 && ctx.Err() == nil
	if silent {
		x.unreachable.Store(true)
		x.errs.say("Redis does not answer yet; trying again for %s: %s", x.flags.wait, reason(err))
	}
	x.waiting.Store(true)
	if (silent || x.refused.Load()) && !x.flags.nonblock && ctx.Err() == nil {
		if x.flags.verbose && !silent {
			x.errs.say("lock %q is held%s; waiting", x.key, heldBy(err))
		}
		hold, err = x.wait(ctx)
	}
	for err == nil && !x.whole(ctx, hold) {
		err = hold.Err()
		x.release(hold)
		if !x.flags.nonblock {
			hold, err = x.wait(ctx)
		}
	}
	waited := time.Since(began)
	cancel()
	bySignal := <-caught // a signal that came just now was taken out of x.signals too
	if err == nil && bySignal == nil {
		if x.flags.verbose {
			x.errs.say("lock %q acquired after %s as %s%s", x.key, rounded(waited), hold.Holder(), tokenText(hold))
		}
		return hold, nil
	}
	if err == nil {
		// As far as can be known, the signal came first.
		x.release(hold)
		return nil, bySignal
	}
	return nil, x.notAcquired(err, bySignal, waited)
}

// wait waits for the lock until ctx or standard input ends.
func (x *execution) wait(ctx context.Context) (*anteroom.Hold, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-x.eof:
			cancel()
		case <-ctx.Done():
		}
	}()
	hold, err := x.entry.wait(ctx)
	if errors.Is(err, anteroom.ErrNotAcquired) { // so says the last answer
		x.refused.Store(true)
	}
	return hold, err
}

// notAcquired maps a failed acquire to an exit status.
func (x *execution) notAcquired(err error, bySignal *exitError, waited time.Duration) error {
	switch {
	case bySignal != nil:
		return bySignal
	case mistake(err):
		return usageError("--note: %w", plain{err})
	case errors.Is(err, anteroom.ErrUnknown) && x.refused.Load() && !x.unreachable.Load():
		// The wait ended while a request was in flight; the answer before that was a refusal.
	case errors.Is(err, anteroom.ErrLost):
		return &exitError{status: exitLost, err: fmt.Errorf("lock %q lost before the command started: %s", x.key, reason(err))}
	case errors.Is(err, context.Canceled) && !x.refused.Load():
		return &exitError{status: exitUnavailable, err: fmt.Errorf("no answer from Redis before standard input ended: %s", reason(err))}
	case !x.refused.Load() && x.flags.wait > 0 && !errors.Is(err, anteroom.ErrConfig):
		return &exitError{status: exitUnavailable, err: fmt.Errorf("no answer from Redis within %s (--wait): %s", x.flags.wait, reason(err))}
	case !errors.Is(err, anteroom.ErrNotAcquired):
		return answered(err)
	}
	state := "held"
	if !x.flags.nonblock {
		state = "still held after " + rounded(waited).String()
	}
	if x.flags.conflict != 0 || x.flags.verbose { // with -E 0 it is as good as done, and cron would send a mail
		x.errs.say("lock %q is %s%s", x.key, state, heldBy(err))
	}
	return &exitError{status: x.flags.conflict}
}

// heldBy says who has the lock and with which note, as far as err knows: nothing of an RWMutex or a Semaphore.
func heldBy(err error) string {
	e, ok := errors.AsType[*anteroom.Error](err)
	switch {
	case !ok || e.Holder == "":
		return " (anteroom status shows by whom)"
	case e.Note == "":
		return " by " + shown(e.Holder)
	}
	return fmt.Sprintf(" by %s (%s)", shown(e.Holder), strconv.Quote(e.Note))
}

// mistake reports whether the library has refused what it was asked for.
func mistake(err error) bool {
	of, is := errors.AsType[*anteroom.Error](err)
	return is && of.Outcome == observe.OutcomeMistake
}

// ended is the result of a signal that ended the wait for the lock.
func ended(s os.Signal) *exitError {
	n, _ := s.(syscall.Signal)
	return endBy(n, false)
}

// release releases the lock and reports whether it had been lost. It ignores the caller's context, which may have
// ended.
func (x *execution) release(hold *anteroom.Hold) (lost bool) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTime)
	defer cancel()
	lost = hold.Err() != nil // the clock alone may show that
	err := hold.Release(ctx)
	if lost || err == nil {
		return lost
	}
	if errors.Is(err, anteroom.ErrLost) {
		return true
	}
	x.gaveUp = true
	x.errs.say("release not confirmed; the lease (%v) will expire by itself: %s", x.flags.lease, reason(err))
	return false
}

// event reports what a user who waits, or searches the cause of a loss, needs to know.
func (x *execution) event(e observe.Event) {
	switch e.Kind {
	case observe.EventUnavailable:
		x.unreachable.Store(true)
	case observe.EventAvailable:
		x.unreachable.Store(false)
		x.refused.Store(true) // or the lock is ours, and nobody asks
	}
	if !x.waiting.Load() {
		return // the first answer is the error that ends the run
	}
	switch e.Kind {
	case observe.EventUnavailable:
		x.errs.say("lock %q: %s: %v", x.key, e.Text, e.Err)
	case observe.EventRenewalFailing:
		x.errs.say("lock %q: renewals fail: %v", x.key, e.Err)
	case observe.EventAvailable:
		x.errs.say("lock %q: Redis answers again", x.key)
	}
}

// reason returns the text of a library error for a line that already names the key.
func reason(err error) string {
	if e, ok := errors.AsType[*anteroom.Error](err); ok {
		err = e.Err
	}
	text := strings.TrimPrefix(err.Error(), "anteroom: ")
	return strings.TrimPrefix(text, "lock lost: ")
}

func tokenText(hold *anteroom.Hold) string {
	token, ok := hold.Token()
	if !ok {
		return ""
	}
	return fmt.Sprintf(", token %d", token)
}

// rounded rounds a duration for display.
func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// notIgnored drops the signals that were ignored when this process was started, as under nohup: the command inherits
// that.
func notIgnored(all []os.Signal) []os.Signal {
	var some []os.Signal
	for _, s := range all {
		if !signal.Ignored(s) {
			some = append(some, s)
		}
	}
	return some
}
