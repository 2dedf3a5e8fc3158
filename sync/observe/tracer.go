package observe

import (
	"context"
	"time"
)

// Tracer has the hooks that are called where acquiring and releasing begin and end, so that spans can be made of them. A
// nil hook is not called. The metrics/otel module has a Tracer for OpenTelemetry.
//
// Every hook, and every function that one returns, may be called concurrently, from goroutines that hold or wait for
// locks: it must return immediately, must not panic (as those of an Observer must not), and must not call back into the
// Manager. Nothing is said of renewals, which no caller waits for.
//
// Errors and texts that a Tracer is given name neither keys nor holders; errors.Is sees through that. Keys and holders
// have fields of their own.
type Tracer struct {
	// StartAcquire is called when a caller begins to acquire a lock, and the function that it returns when that has
	// ended; nil: there is nothing to report. ctx is the caller's, and context.Background() for Lock, TryLock and
	// TryLockFor, which have none.
	//
	// The hold takes the values of the context that is returned for those of ctx: they come back in
	// ReleaseStart.Acquired and with Lost, and Hold.Context has them. It must be ctx or made of it, with the same end.
	StartAcquire func(ctx context.Context, a AcquireStart) (context.Context, func(AcquireEnd))

	// StartRelease is called when the owner begins to release, and the function that it returns when that has ended;
	// nil: there is nothing to report. ctx is that of Hold.Release; for Do it is ReleaseStart.Acquired, and
	// context.Background() for Unlock.
	StartRelease func(ctx context.Context, r ReleaseStart) func(ReleaseEnd)

	// Lost is called for a hold that was lost while somebody had it, after its owner was notified and the loss was
	// logged. ctx has the values of the hold's context and does not end; it is context.Background() for a lock by Lock.
	Lost func(ctx context.Context, e Event)
}

// AcquireStart says what is about to be acquired.
type AcquireStart struct {
	Key   string
	Class string
	// Op is "acquire", "try acquire", "acquire all", "seize", "resume", "do", "try do", "lock" or "try lock" (also TryLockFor), and of an
	// RWMutex that is to be read "racquire", "try racquire", "rdo", "rlock" or "try rlock".
	Op   string
	Fair bool
	// Lock: by Lock, RLock, their Try forms or Weighted.TryAcquire, which have no context.
	Lock bool
}

// AcquireEnd says how acquiring ended.
type AcquireEnd struct {
	Outcome Outcome // one of LabelSets.Acquire
	// HandOffs is how many local owners the lock had before this one since Redis
	// granted it; 0 where it was not acquired.
	HandOffs int
	// Holder is the field in Redis, "" where it was not acquired.
	Holder string
	// Err is why it was not acquired.
	Err error
}

// ReleaseStart says what is about to be released.
type ReleaseStart struct {
	Key   string
	Class string
	Op    string // "release", "detach", "do" or "unlock"
	Fair  bool
	Lock  bool // by Unlock, which has no context
	// Acquired is the context that StartAcquire returned for this hold, without its end.
	// It is context.Background() where there was none.
	Acquired context.Context
}

// ReleaseEnd says how releasing ended.
type ReleaseEnd struct {
	Outcome Outcome       // one of LabelSets.Release; "" where Unlock is about to panic: another goroutine has unlocked it
	Held    time.Duration // how long it was held
	Err     error         // as Release returns it; for Unlock, what it could not return
}
