//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	anteroom "github.com/anteroom/anteroom/sync"
)

// cleanUpTime bounds a release and, if no release was needed, how long exec goes on removing what it may have left in
// Redis. After that the lease removes it.
const cleanUpTime = 2 * time.Second

// execution is one run of exec.
type execution struct {
	flags   execFlags
	errs    *voice
	signals chan os.Signal // those that end a process; all others too once the command starts
	key     string
	refused bool        // Redis has answered that somebody else has the lock
	gaveUp  bool        // a release was not confirmed within cleanUpTime
	away    atomic.Bool // the last attempt to reach Redis failed
	waiting atomic.Bool // Redis has answered: somebody else has the lock, or we have it
}

// runExec carries out `anteroom exec`. The order matters: what cannot work fails before the wait; signals are caught
// before the lock can be held, so that every way out releases it; and the lock is released once nothing of the
// command remains.
func runExec(cmd *cobra.Command, f execFlags, key string, words []string) error {
	cfg, err := f.lock(cmd, key)
	if err != nil {
		return err
	}
	system := ownSystem()
	if err := system.refusal(); err != nil {
		return err
	}
	path, argv, err := f.program(words)
	if err != nil {
		return err
	}
	written, err := dialect(cmd)
	if err != nil {
		return err
	}
	rdb, err := connect(cmd)
	if err != nil {
		return err
	}
	defer rdb.Close()
	x := &execution{flags: f, errs: newVoice(cmd.ErrOrStderr()), signals: make(chan os.Signal, 64), key: key}
	defer x.errs.close()
	m, err := anteroom.NewManager(rdb, anteroom.Config{Dialect: written, Logger: slog.New(slog.DiscardHandler), OnEvent: x.event})
	if err != nil {
		return err
	}
	defer x.close(m)
	mu, err := m.NewMutex(cfg)
	if err != nil {
		return err
	}
	// A pipe without a reader must not end this process before the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signal.Notify(x.signals, notIgnored(endingSignals)...)
	defer signal.Stop(x.signals)
	if lacks := system.shortfall(); lacks != "" {
		x.errs.say("exec promises less on this system: %s", lacks)
	}
	if most := f.mostGrace(); f.grace > most {
		x.errs.say("--grace %v is more than a lease of %v leaves time for (%v): after a loss the command may run "+
			"at the same time as the next holder; --lease %v leaves enough", f.grace, f.lease, most, 15*f.grace)
	}
	hold, err := x.acquire(cmd.Context(), mu)
	if err != nil {
		return err
	}
	return x.whileHeld(hold, launch{Path: path, Argv: argv, Grace: f.grace, Slack: f.slack()})
}

// acquire waits for the lock as the flags say. Redis must answer once at the start, so that a wrong address shows at
// once and not after the longest wait.
func (x *execution) acquire(ctx context.Context, mu *anteroom.Mutex) (*anteroom.Hold, error) {
	ctx, cancel := context.WithCancel(ctx)
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
	hold, err := mu.TryAcquire(ctx)
	x.waiting.Store(true)
	x.refused = errors.Is(err, anteroom.ErrNotAcquired)
	if errors.Is(err, anteroom.ErrNotAcquired) && !x.flags.nonblock && ctx.Err() == nil {
		var limit []anteroom.AcquireOption
		if left := x.flags.wait.Duration - time.Since(began); x.flags.wait.Duration > 0 {
			limit = append(limit, anteroom.Wait(max(left, time.Millisecond)))
		}
		if x.flags.verbose {
			x.errs.say("lock %q is taken; waiting", x.key)
		}
		hold, err = mu.Acquire(ctx, limit...)
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
		// As far as can be told, the signal came first.
		x.release(hold)
		return nil, bySignal
	}
	return nil, x.notAcquired(err, bySignal, waited)
}

// notAcquired maps a failed acquire to an exit status.
func (x *execution) notAcquired(err error, bySignal *exitError, waited time.Duration) error {
	switch {
	case bySignal != nil:
		return bySignal
	case errors.Is(err, anteroom.ErrUnknown) && errors.Is(err, context.DeadlineExceeded) && x.refused && !x.away.Load():
		// The time ended while a request was in flight; the answer before that was a refusal.
	case !errors.Is(err, anteroom.ErrNotAcquired):
		return answered(err)
	}
	if x.flags.verbose {
		x.errs.say("lock %q not acquired within %s", x.key, rounded(waited))
	}
	return &exitError{status: x.flags.conflict}
}

// ended is the result of a signal that came before the command was started.
func ended(s os.Signal) *exitError {
	n, _ := s.(syscall.Signal)
	return endBy(n, false)
}

// whileHeld runs the command and releases the lock afterwards, whatever happens.
func (x *execution) whileHeld(hold *anteroom.Hold, l launch) error {
	l.Env = x.environment(os.Environ(), hold)
	k := &keeper{execution: x, hold: hold, lease: x.flags.lease}
	status, err := k.run(l)
	held := time.Since(hold.Since())
	lost := x.release(hold)
	switch {
	case k.told:
		return &exitError{status: exitLost, err: err}
	case err != nil:
		return err
	case lost:
		x.errs.say("lock %q was lost while the command ran; the command ended with %d", x.key, status)
		return &exitError{status: exitLost}
	case x.flags.verbose:
		x.errs.say("lock %q released after %s", x.key, rounded(held))
	}
	switch {
	case k.signal != 0:
		return endBy(k.signal, k.byKey)
	case status != 0:
		return &exitError{status: status}
	}
	return nil
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

// close closes the Manager, which removes what a lost answer may have left in Redis.
func (x *execution) close(m *anteroom.Manager) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTime)
	defer cancel()
	if x.gaveUp {
		cancel()
	}
	_ = m.Close(ctx)
}

// event reports what a user who waits, or looks for the cause of a loss, needs to know.
func (x *execution) event(e anteroom.Event) {
	switch e.Kind {
	case anteroom.EventUnavailable, anteroom.EventAvailable:
		x.away.Store(e.Kind == anteroom.EventUnavailable)
	}
	if !x.waiting.Load() {
		return // the first answer is the error that ends the run
	}
	switch e.Kind {
	case anteroom.EventUnavailable:
		x.errs.say("lock %q: %s: %v", x.key, e.Text, e.Err)
	case anteroom.EventRenewalFailing:
		x.errs.say("lock %q: renewals fail: %v", x.key, e.Err)
	case anteroom.EventAvailable:
		x.errs.say("lock %q: Redis answers again", x.key)
	}
}

// environment returns base plus the variables that describe the lock to the command, minus those that are for
// anteroom only. The token of an outer exec never passes for this one's.
func (x *execution) environment(base []string, hold *anteroom.Hold) []string {
	env := without(base, "ANTEROOM_KEY", "ANTEROOM_HOLDER", "ANTEROOM_TOKEN")
	if !x.flags.passEnv {
		env = without(env, redisVariable)
	}
	if !strings.Contains(x.key, "\x00") { // no variable can hold a zero byte
		env = append(env, "ANTEROOM_KEY="+x.key)
	}
	env = append(env, "ANTEROOM_HOLDER="+hold.Holder())
	if token, ok := hold.Token(); ok {
		env = append(env, fmt.Sprintf("ANTEROOM_TOKEN=%d", token))
	}
	return env
}

// without returns the variables of env whose names are not in names.
func without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(names, name)
	})
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
