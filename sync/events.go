package anteroom

import (
	"context"
	"hash/fnv"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// EventKind says what an Event is about.
type EventKind string

// The kinds of events.
const (
	EventLost             EventKind = "lost"              // a hold was lost; Reason says why
	EventRenewalFailing   EventKind = "renewal_failing"   // the second renewal in a row failed; Err is the last answer
	EventReleaseFailed    EventKind = "release_failed"    // a release was not confirmed; it is retried in the background
	EventReleaseGivenUp   EventKind = "release_given_up"  // a lease has passed without a confirmed release: the lease ended by itself
	EventUnlockLost       EventKind = "unlock_lost"       // Unlock of a lock that had been lost
	EventReentryLost      EventKind = "reentry_lost"      // Lock entered again into a lock that had been lost
	EventSelfDeadlock     EventKind = "self_deadlock"     // Lock by a goroutine whose own Acquire holds the key
	EventLongWait         EventKind = "long_wait"         // callers have waited for a key for longer than Config.LongWait
	EventDeadlock         EventKind = "deadlock"          // goroutines of this Manager wait for each other's locks
	EventUnavailable      EventKind = "unavailable"       // acquiring this key meets errors; it is retried
	EventAvailable        EventKind = "available"         // acquiring this key gets answers again
	EventAbandoned        EventKind = "abandoned"         // a Hold that nobody can reach any more was never released
	EventSubscriptionDown EventKind = "subscription_down" // wake-ups come by polling until it is up again
	EventSubscriptionUp   EventKind = "subscription_up"
	EventWarning          EventKind = "warning"       // something that works less well than it could, for example a refused PUBLISH
	EventClockJump        EventKind = "clock_jump"    // wall clock and monotonic clock disagree: the machine slept
	EventSelfLate         EventKind = "self_late"     // this process was stopped or starved; checks of that round accuse nobody
	EventAlert            EventKind = "alert"         // AlertThreshold checks in a row failed
	EventAlertCleared     EventKind = "alert_cleared" // the check passes again, or the hold ended
	EventRecovery         EventKind = "recovery"      // the watchdog acted
)

// EventKinds lists them all.
var EventKinds = []EventKind{
	EventLost, EventRenewalFailing, EventReleaseFailed, EventReleaseGivenUp, EventUnlockLost, EventReentryLost, EventSelfDeadlock,
	EventLongWait, EventDeadlock, EventUnavailable, EventAvailable, EventAbandoned, EventSubscriptionDown, EventSubscriptionUp, EventWarning, EventClockJump,
	EventSelfLate, EventAlert, EventAlertCleared, EventRecovery,
}

// Event is something that a person or a program may want to know. Fields that do
// not apply to a kind are zero.
type Event struct {
	Kind     EventKind
	At       time.Time
	ClientID string // of the Manager that raised it
	Key      string
	Class    string
	Holder   string     // the field in Redis: "<client id>:<n>"
	Reason   LossReason // EventLost
	Since    time.Time  // EventLost: from when on the lock cannot be relied on; EventSelfLate and others: when it began
	Owners   int        // EventLost: how many holds were told; 0 if nobody held it at that moment
	Check    string     // alerts and recoveries: the watchdog's check
	Text     string     // a sentence for people
	CallSite string     // where the hold was acquired, if recorded; EventLongWait, EventDeadlock: where Waits[0] waits
	Waiters  int        // EventLongWait, EventDeadlock: how many callers of this process wait, behind these too
	Waits    []WaitInfo // EventLongWait: the longest wait; EventDeadlock: every wait of the cycle
	Err      error
}

// eventQueueLen bounds the events that wait for OnEvent and the log.
const eventQueueLen = 1024

// eventQueue carries events off the lock path: whoever raises one never waits.
type eventQueue struct {
	logger   *slog.Logger
	logKeys  bool
	clientID string
	onEvent  func(Event)
	obs      Observer

	ch   chan Event
	quit chan struct{}
	done sync.WaitGroup
	once sync.Once
}

func newEventQueue(cfg Config) *eventQueue {
	q := &eventQueue{
		logger: cfg.Logger, logKeys: cfg.LogKeys, clientID: cfg.ClientID, onEvent: cfg.OnEvent, obs: cfg.Observer,
		ch: make(chan Event, eventQueueLen), quit: make(chan struct{}),
	}
	q.done.Go(q.run)
	return q
}

// raise queues e and never blocks; a full queue drops it and counts that.
func (q *eventQueue) raise(e Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.ClientID = q.clientID
	select {
	case q.ch <- e:
		q.obs.EventRaised(e.Kind, false)
	default:
		q.obs.EventRaised(e.Kind, true)
	}
}

// stop delivers what is queued and ends the goroutine. Later events are dropped.
func (q *eventQueue) stop() {
	q.once.Do(func() { close(q.quit) })
	q.done.Wait()
}

func (q *eventQueue) run() {
	for {
		select {
		case e := <-q.ch:
			q.deliver(e)
		case <-q.quit:
			for {
				select {
				case e := <-q.ch:
					q.deliver(e)
				default:
					return
				}
			}
		}
	}
}

func (q *eventQueue) deliver(e Event) {
	q.log(e)
	if q.onEvent != nil {
		q.onEvent(e)
	}
}

// log writes one record. Losses and failed releases are errors, what got better
// is information, everything else a warning.
func (q *eventQueue) log(e Event) {
	level := slog.LevelWarn
	switch e.Kind {
	case EventLost, EventReleaseGivenUp, EventUnlockLost, EventSelfDeadlock, EventDeadlock:
		level = slog.LevelError
	case EventAvailable, EventSubscriptionUp, EventAlertCleared:
		level = slog.LevelInfo
	}
	ctx := context.Background()
	if !q.logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 10)
	attrs = append(attrs, slog.String("event", string(e.Kind)))
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	add("class", e.Class)
	if e.Key != "" {
		if q.logKeys {
			attrs = append(attrs, slog.String("key", e.Key))
		} else {
			attrs = append(attrs, slog.String("key_hash", keyHash(e.Key)))
		}
	}
	add("reason", string(e.Reason))
	add("check", e.Check)
	add("text", q.public(e.Text, &e))
	add("call_site", e.CallSite)
	if !e.Since.IsZero() {
		attrs = append(attrs, slog.Time("since", e.Since))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("err", q.public(e.Err.Error(), &e)))
	}
	q.logger.LogAttrs(ctx, level, "anteroom: "+string(e.Kind), attrs...)
}

// keyHash is a short name for a key in logs that must not carry keys: enough to
// tell two keys of a program apart, not enough to find the key by it alone.
func keyHash(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
