package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
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
	// usableBound is when a key that lost its holder must have another one: a lease, a look of a waiter that was not
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
	server    server            // the one that faults take away
	processes []process         // the ones that carry out orders
	stranger  *redis.Client     // a client that knows nothing of the library
	operator  *anteroom.Manager // releases by force
	turn      int               // index of the process that the next fault is aimed at
	noOutage  bool              // the server does not permit outages
}

// fault is one kind of fault.
type fault struct {
	// inject injects the fault and waits for its effects. If it could not, it prints that, and the fault is not
	// counted.
	inject func()
	// embeddedOnly: not allowed on a server that others use.
	embeddedOnly bool
}

// run injects faults until ctx ends. It returns when the last one is settled, within that one's bounds: a fault that
// has begun is carried through, because a lock prepared for it would otherwise be lost without a cause.
//
// Faults never overlap, so every report belongs to the current one: a lock that is deleted while the server is away
// would be lost by either.
func (i *injector) run(ctx context.Context, isEmbedded bool) {
	faults := []fault{
		{inject: i.deleteKey},
		{inject: i.releaseByForce},
		{inject: i.forgetUnlock},
		{inject: i.shortAbsence},
		{inject: i.dropHold},
		{inject: i.longAbsence, embeddedOnly: true},
	}
	for n := 0; ; n++ {
		pause(ctx, i.between)
		if ctx.Err() != nil {
			return
		}
		if f := faults[n%len(faults)]; isEmbedded || !f.embeddedOnly {
			f.inject()
		}
	}
}

// deleteKey: a client that knows nothing of locks deletes the key of a held one. Redis notifies nobody, so the
// watchdog or the next renewal has to find out; until then another holder may be admitted, and both run. Their
// resource keeps order.
func (i *injector) deleteKey() {
	key, holder, ok := i.prepare(actHold, keyDeleted)
	if !ok {
		return
	}
	x := i.expectLoss(key, removalBound, anteroom.LostGone)
	i.console.say(markFault, "a stranger deletes the key of %s (DEL), held by process %d", i.name(key), holder)
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime)
	defer cancel()
	n, err := i.stranger.Del(ctx, key).Result()
	if err != nil {
		i.failed(x, err)
		return
	}
	if n == 0 {
		i.failed(x, errors.New("there was no such key any more"))
		return
	}
	i.injected()
	i.settle(x)
}

// releaseByForce: an operator releases a held lock. A message notifies the holder's Manager, so the report comes at
// once. If the message is lost, because its connection is being re-established after an outage, or if a check
// overtakes it on a busy machine, this is a removal like any other, with its bound and its reason.
func (i *injector) releaseByForce() {
	key, holder, ok := i.prepare(actHold, keyForced)
	if !ok {
		return
	}
	x := i.expectLoss(key, removalBound, anteroom.LostForced, anteroom.LostGone)
	i.console.say(markFault, "an operator releases %s by force, held by process %d", i.name(key), holder)
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime)
	defer cancel()
	was, err := i.operator.ForceRelease(ctx, key)
	if err != nil || !was {
		i.failed(x, errors.Join(err, errors.New("nobody held it any more")))
		return
	}
	i.injected()
	i.settle(x)
}

// forgetUnlock: a goroutine locks and ends. The watchdog has to find that out and stop renewing, so that the lease
// expires.
func (i *injector) forgetUnlock() {
	key, holder, ok := i.prepare(actForget, keyForgot)
	if !ok {
		return
	}
	// The watchdog looks at goroutines once a lease has passed, and then the lease has to expire.
	x := i.expectLoss(key, 2*forgetLease+2*watchdogPeriod+busy, anteroom.LostDeadline)
	i.console.say(markFault, "a goroutine of process %d locked %s and ended without unlocking", holder, i.name(key))
	i.injected()
	i.settle(x)
}

// dropHold: a Hold with a fixed lease is dropped and never released. The library allows that: the lease expires by
// itself, and the loss is reported.
func (i *injector) dropHold() {
	key, holder, ok := i.prepare(actDrop, keyDropped)
	if !ok {
		return
	}
	x := i.expectLoss(key, dropLease+busy, anteroom.LostDeadline)
	i.console.say(markFault, "process %d dropped its Hold of %s, which has a fixed lease of %v", holder, i.name(key), dropLease)
	i.injected()
	i.settle(x)
}

// shortAbsence: the server is away for less than any lease, so nothing may be lost.
func (i *injector) shortAbsence() {
	if i.noOutage {
		return
	}
	i.console.say(markFault, "Redis is away for %v, less than every lease", shortOutage)
	// One second more, because effects of the outage may be reported after it.
	i.forbidLosses(shortOutage + time.Second)
	before := i.losses()
	if i.outage(shortOutage) && i.losses() == before {
		i.console.say(markNext, "Redis is back; no lock was lost")
	}
}

// longAbsence: the server is away for longer than one lock's lease and less than the others'. The holder cannot reach
// the server, and is still notified, by its own clock, before the server could grant the lock to another.
func (i *injector) longAbsence() {
	key, holder, ok := i.prepare(actHold, keyAway)
	if !ok {
		return
	}
	x := i.expectLoss(key, awayLease+busy, anteroom.LostDeadline)
	i.console.say(markFault, "Redis is away for %v, longer than the lease of %s, held by process %d", longOutage, i.name(key), holder)
	i.forbidLosses(longOutage + time.Second)
	if i.outage(longOutage) {
		i.settle(x)
	}
}

// outage takes the server away and counts the fault. If the server does not permit that, it prints so once and does
// not try again.
func (i *injector) outage(d time.Duration) bool {
	if err := i.server.outage(d); err != nil {
		i.noOutage = true
		i.console.say(markNote, "skipped, now and later: %v", err)
		return false
	}
	i.injected()
	return true
}

// prepare makes the next process hold the lock that a fault is aimed at. If it cannot, ok is false and the fault is
// not injected. Each fault is aimed at the next process, so that every process of a run is hit.
func (i *injector) prepare(a act, name string) (key string, holder int, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime+commandTimeout)
	defer cancel()
	at := i.turn % len(i.processes)
	i.turn++
	key = i.prefix + name
	if err := i.processes[at].obey(ctx, Order{Act: a, Key: key}); err != nil {
		i.console.say(markNote, "no fault: process %d could not get %s: %v", at+1, i.name(key), err)
		return "", 0, false
	}
	return key, at + 1, true
}

// failed reports that a fault did not take place. Its victim gives up by itself, see tellTime.
func (i *injector) failed(x *expectation, err error) {
	i.withdraw(x)
	i.console.say(markNote, "no fault: %s: %v", i.name(x.key), err)
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
