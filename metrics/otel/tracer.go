package anteroomotel

import (
	"runtime/debug"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/anteroom/anteroom/sync/observe"
)

// ScopeName is the name of the instrumentation scope of all spans.
const ScopeName = "github.com/anteroom/anteroom/metrics/otel"

// The names of the spans; SpanLost is also that of the event on a span that is still open.
const (
	SpanAcquire = "anteroom.acquire"
	SpanRelease = "anteroom.release"
	SpanLost    = "anteroom.lost"
)

// The attributes. docs/reference/span-attributes.md says which span has which.
const (
	ClassKey     = attribute.Key("anteroom.class")         // LockConfig.Name
	KeyKey       = attribute.Key("anteroom.key")           // with WithKeys only
	OperationKey = attribute.Key("anteroom.operation")     // AcquireStart.Op or ReleaseStart.Op
	ModeKey      = attribute.Key("anteroom.mode")          // "fair" or "non-fair"
	OutcomeKey   = attribute.Key("anteroom.outcome")       // "acquired", or one of observe.LabelSets.Acquire or Release
	ViaKey       = attribute.Key("anteroom.via")           // of an acquired lock: "redis", "handoff" or "reentry"
	HandOffsKey  = attribute.Key("anteroom.handoffs")      // local owners before this one, since Redis granted the lock
	GrantKey     = attribute.Key("anteroom.grant")         // as "grant" in the log
	HeldKey      = attribute.Key("anteroom.hold.duration") // of a release, in seconds
	ErrorTypeKey = attribute.Key("error.type")             // the outcome, where that is an error

	ReasonKey        = attribute.Key("anteroom.lost.reason") // one of observe.LabelSets.Losses
	SinceKey         = attribute.Key("anteroom.lost.since")  // RFC 3339
	LastConfirmedKey = attribute.Key("anteroom.lost.last_confirmed")
	FailuresKey      = attribute.Key("anteroom.lost.failures")
	FoundKey         = attribute.Key("anteroom.lost.found")
	TextKey          = attribute.Key("anteroom.lost.text")
	ErrorKey         = attribute.Key("anteroom.lost.error")
)

// tracer has what the hooks need.
type tracer struct {
	tracer trace.Tracer
	keys   bool
	locks  bool
}

// Option changes what New returns.
type Option interface{ apply(*config) }

type config struct {
	provider    trace.TracerProvider
	keys, locks bool
}

type option func(*config)

func (o option) apply(c *config) { o(c) }

// WithTracerProvider creates the spans with p. Defaults to the global provider, even if that is set after New.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) { c.provider = p })
}

// WithKeys adds the lock's key to the spans. Keys may hold personal data, so by default a span has only the class.
func WithKeys() Option { return option(func(c *config) { c.keys = true }) }

// WithLocks creates spans for Lock, TryLock, TryLockFor and Unlock too. They have no context, so each is the root of
// a trace of its own: many traces for a lock that is acquired often. To see a lock in its request's trace, use
// Acquire or Do.
func WithLocks() Option { return option(func(c *config) { c.locks = true }) }

// New returns a Tracer for anteroom.Config. Managers may share one.
func New(opts ...Option) *observe.Tracer {
	var c config
	for _, o := range opts {
		o.apply(&c)
	}
	if c.provider == nil {
		c.provider = otel.GetTracerProvider()
	}
	t := &tracer{
		tracer: c.provider.Tracer(ScopeName, trace.WithInstrumentationVersion(version())),
		keys:   c.keys, locks: c.locks,
	}
	return &observe.Tracer{StartAcquire: t.startAcquire, StartRelease: t.startRelease, Lost: t.onLost}
}

// version returns the version of this module in the program; "" if the build does not record it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == ScopeName {
			if m.Replace != nil {
				m = m.Replace
			}
			return m.Version
		}
	}
	return ""
}
