package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

const (
	// shortOutage is well below every lease.
	shortOutage = 600 * time.Millisecond
	// longOutage is longer than a fenced lease and well below a plain one.
	longOutage = awayLease + 600*time.Millisecond
	// firstRenewal is when the lease of a lock that a release has passed on is whole, on a loaded machine too.
	firstRenewal = 600 * time.Millisecond
	// busy is what a loaded machine may add to the time that the library promises: reports pass through queues and
	// pipes, and through goroutines that have to run. The actual time is printed.
	busy = 4 * time.Second
	// removalBound is the promise for a removed lock, docs/guarantees.md §3.
	removalBound = watchdogPeriod + commandTimeout + busy
	// usableBound is when a key that lost its holder must have another one: a lease, a retry of a waiter that was not
	// called, and the queue before it.
	usableBound = plainLease + 2*time.Second + busy
)

// injector injects the faults of a run, one after the other, and waits for the library's reports about each. Only one
// goroutine uses it.
type injector struct {
	*ledger                     // what is expected, and what came
	console   *console          // where each fault is announced before it happens
	prefix    string            // of every key
	between   time.Duration     // two faults, so that the reports can be read
	server    server            // the one that faults make unreachable
	processes []process         // the ones that carry out orders
	foreign   *redis.Client     // a client that knows nothing of the library
	operator  *anteroom.Manager // releases by force
	turn      int               // index of the process that the next fault is aimed at
	noOutage  bool              // the server does not permit outages
}

// run injects faults until ctx ends. It returns when the last one is settled, within that one's bounds: a fault that
// has begun is carried through, because a lock prepared for it would otherwise be lost without a cause.
//
// Faults never overlap, so every report belongs to the current one: a lock that is deleted while the server is
// unreachable would be lost by either.
func (i *injector) run(ctx context.Context, isEmbedded bool) {
	faults := []func(){i.deleteKey, i.releaseByForce, i.forgetUnlock, i.shortAbsence, i.dropHold}
	if isEmbedded { // not allowed on a server that others use
		faults = append(faults, i.longAbsence)
	}
	for n := 0; ; n++ {
		pause(ctx, i.between)
		if ctx.Err() != nil {
			return
		}
		faults[n%len(faults)]()
	}
}

// deleteKey: a client that knows nothing of locks deletes the key of a held one. Redis notifies nobody, so the
// watchdog or the next renewal has to find out; until then another holder may be admitted, and both run. Their
// resource keeps order. On a machine that stalls the lease may run out first.
func (i *injector) deleteKey() {
	const text = "a foreign client deletes the key of %[1]s (DEL), held by process %[2]d"
	i.destroy(actHold, keyDeleted, text, removalBound, func(ctx context.Context, key string) error {
		n, err := i.foreign.Del(ctx, key).Result()
		if err == nil && n == 0 {
			return errors.New("there was no such key any more")
		}
		return err
	}, observe.LostGone, observe.LostDeadline)
}

// releaseByForce: an operator releases a held lock. A message notifies the holder's Manager, so the report comes at
// once. If the message is lost, because its connection is being re-established after an outage, or if a check
// overtakes it on a busy machine, this is a removal like any other, with its bound and its reason.
func (i *injector) releaseByForce() {
	const text = "an operator releases %[1]s by force, held by process %[2]d"
	i.destroy(actHold, keyForced, text, removalBound, func(ctx context.Context, key string) error {
		broken, err := i.operator.ForceRelease(ctx, key)
		if err == nil && len(broken) == 0 {
			return errors.New("nobody held it any more")
		}
		return err
	}, observe.LostForced, observe.LostGone, observe.LostDeadline)
}

// forgetUnlock: a goroutine locks and ends. The watchdog has to find that out and stop renewing, so that the lease
// expires: it inspects goroutines once a lease has passed, and then the lease has to expire.
func (i *injector) forgetUnlock() {
	const text = "a goroutine of process %[2]d locked %[1]s and ended without unlocking"
	i.destroy(actForget, keyForgot, text, 2*forgetLease+2*watchdogPeriod+busy, alreadyDone, observe.LostDeadline)
}

// dropHold: a Hold with a fixed lease is dropped and never released. The library allows that: the lease expires by
// itself, and the loss is reported.
func (i *injector) dropHold() {
	text := fmt.Sprintf("process %%[2]d dropped its Hold of %%[1]s, which has a fixed lease of %v", dropLease)
	i.destroy(actDrop, keyDropped, text, dropLease+busy, alreadyDone, observe.LostFixed)
}

// alreadyDone is the strike of a fault that its victim commits itself.
func alreadyDone(context.Context, string) error { return nil }

// longAbsence: the server is unreachable for longer than one lock's lease and less than the others'. The holder cannot
// reach the server, and is still notified, by its own clock, before the server could grant the lock to another.
func (i *injector) longAbsence() {
	text := fmt.Sprintf("Redis is unreachable for %v, longer than the lease of %%[1]s, held by process %%[2]d", longOutage)
	i.destroy(actHold, keyAway, text, awayLease+busy, func(context.Context, string) error {
		i.forbidLosses(longOutage + time.Second)
		return i.server.outage(longOutage)
	}, observe.LostDeadline)
}

// shortAbsence: the server is unreachable for less than any lease, so nothing may be lost. If the server does not
// permit that, it is not tried again.
func (i *injector) shortAbsence() {
	if i.noOutage {
		return
	}
	i.console.say(markFault, "Redis is unreachable for %v, less than every lease", shortOutage)
	// One second more, because effects of the outage may be reported after it.
	i.forbidLosses(shortOutage + time.Second)
	before := i.losses()
	if err := i.server.outage(shortOutage); err != nil {
		i.noOutage = true
		i.console.say(markNote, "skipped, now and later: %v", err)
		return
	}
	i.injected()
	if i.losses() == before {
		i.console.say(markNext, "Redis is back; no lock was lost")
	}
}

// destroy injects a fault that destroys a lock, and waits for its effects: the next process carries out the order and
// so holds the lock called name, text announces the fault, strike destroys the lock, and its loss must be reported
// with one of these reasons. Each fault is aimed at the next process, so that every process of a run is hit. A fault
// that could not be injected is not counted; its victim gives up by itself, see tellTime.
func (i *injector) destroy(a act, name, text string, within time.Duration, strike func(ctx context.Context, key string) error, reasons ...observe.LossReason) {
	at, key := i.turn%len(i.processes), i.prefix+name
	i.turn++
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime+commandTimeout)
	defer cancel()
	if err := i.processes[at].obey(ctx, Order{Act: a, Key: key}); err != nil {
		i.console.say(markNote, "no fault: process %d could not get %s: %v", at+1, name, err)
		return
	}
	x := i.expectLoss(key, within, reasons...)
	i.console.say(markFault, text, name, at+1)
	if err := strike(ctx, key); err != nil {
		i.withdraw(x)
		i.console.say(markNote, "no fault: %s: %v", name, err)
		return
	}
	i.injected()
	i.settle(x)
}

// settle waits, each time within the bound, until the loss caused by a fault is reported and its key has another
// holder. A report is printed where it arrives; a missing one is named here, beside its fault, and again at the end
// of the run.
func (i *injector) settle(x *expectation) {
	if !i.await(x) {
		i.console.broken("not reported within %v: the loss of %s with reason %s", x.within, i.name(x.key), x.causes())
		return
	}
	entry := i.expectEntry(x.key, usableBound)
	if !i.await(entry) {
		i.console.broken("not usable again within %v: %s", entry.within, i.name(x.key))
		return
	}
	i.console.took(markNext, entry.from.Add(entry.took).Sub(x.from), "%s is usable again: process %d holds it", i.name(x.key), entry.by)
}
