package anteroomotel

import (
	"context"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/anteroom/anteroom/sync/observe"
)

// acquireKey is the context key of the trace.SpanContext of a hold's acquire, to which its release and its loss link.
type acquireKey struct{}

// acquiredBy returns that span context, which is invalid if there is none.
func acquiredBy(ctx context.Context) trace.SpanContext {
	sc, _ := ctx.Value(acquireKey{}).(trace.SpanContext)
	return sc
}

// startAcquire starts the span of an acquire as a child of ctx's span. The hold's context keeps the caller's span:
// the span of the acquire has ended when the work begins.
func (t *tracer) startAcquire(ctx context.Context, a observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
	if a.Lock && !t.locks {
		return ctx, nil
	}
	_, span := t.tracer.Start(ctx, SpanAcquire, trace.WithAttributes(t.about(a.Key, a.Class, a.Op, a.Fair)...))
	if !span.IsRecording() {
		span.End()
		if acquiredBy(ctx).IsValid() { // do not inherit an outer hold's acquire
			ctx = context.WithValue(ctx, acquireKey{}, trace.SpanContext{})
		}
		return ctx, nil
	}
	return context.WithValue(ctx, acquireKey{}, span.SpanContext()), func(end observe.AcquireEnd) {
		defer span.End()
		outcome, via := end.Outcome.AcquireLabels()
		span.SetAttributes(OutcomeKey.String(outcome))
		switch end.Outcome {
		case observe.OutcomeGranted, observe.OutcomeHandedOff, observe.OutcomeNested:
			span.SetAttributes(ViaKey.String(via), HandOffsKey.Int(end.HandOffs))
			setGrant(span, end.Holder)
		case observe.OutcomeRefused, observe.OutcomeCancelled:
			// A refusal is an answer, for a Try a normal one; a cancellation is the caller's own decision. If Redis
			// caused the end of a wait, the outcome is unavailable or unknown.
		default:
			fail(span, string(end.Outcome), end.Err)
		}
	}
}

// startRelease starts the span of a release as a child of ctx's span or, if ctx has none, of the span in which the
// lock was acquired.
func (t *tracer) startRelease(ctx context.Context, r observe.ReleaseStart) func(observe.ReleaseEnd) {
	if r.Lock && !t.locks {
		return nil
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = r.Acquired
	}
	_, span := t.tracer.Start(ctx, SpanRelease, trace.WithAttributes(t.about(r.Key, r.Class, r.Op, r.Fair)...), linkTo(acquiredBy(r.Acquired)))
	if !span.IsRecording() {
		span.End()
		return nil
	}
	return func(end observe.ReleaseEnd) {
		defer span.End()
		if end.Outcome == "" {
			fail(span, "mistake", end.Err)
			return
		}
		span.SetAttributes(OutcomeKey.String(string(end.Outcome)), HeldKey.Float64(end.Held.Seconds()))
		switch end.Outcome {
		case observe.OutcomeReleased, observe.OutcomeHandedOff, observe.OutcomeNested:
		default:
			fail(span, string(end.Outcome), end.Err)
		}
	}
}

// onLost records a loss as an event on the caller's span while that is open, where it appears in its place in the
// request. Otherwise it creates a short span of its own, linked to the acquire.
func (t *tracer) onLost(ctx context.Context, e observe.Event) {
	by := acquiredBy(ctx)
	if !by.IsValid() && !t.locks {
		return // acquired by Lock, or by an acquire that was not sampled
	}
	attrs := t.lost(e)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent(SpanLost, trace.WithTimestamp(e.At), trace.WithAttributes(attrs...))
		return
	}
	_, span := t.tracer.Start(ctx, SpanLost, trace.WithTimestamp(e.At), trace.WithAttributes(attrs...), linkTo(by))
	setGrant(span, e.Holder)
	fail(span, string(e.Reason), e.Err)
	span.End()
}

// about returns the attributes of a lock that a span has from the start, so that samplers see them.
func (t *tracer) about(key, class, op string, fair bool) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 4)
	attrs = append(attrs, ClassKey.String(class), OperationKey.String(op))
	if fair {
		attrs = append(attrs, ModeKey.String("fair"))
	} else {
		attrs = append(attrs, ModeKey.String("non-fair"))
	}
	if t.keys {
		attrs = append(attrs, KeyKey.String(key))
	}
	return attrs
}

// lost returns the attributes of a loss.
func (t *tracer) lost(e observe.Event) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		ClassKey.String(e.Class), ReasonKey.String(string(e.Reason)), TextKey.String(e.Text), FailuresKey.Int(e.Failures),
		SinceKey.String(e.Since.Format(time.RFC3339Nano)), LastConfirmedKey.String(e.LastConfirmed.Format(time.RFC3339Nano)),
	}
	if e.Found != "" {
		attrs = append(attrs, FoundKey.String(e.Found))
	}
	if e.Err != nil {
		attrs = append(attrs, ErrorKey.String(e.Err.Error()))
	}
	if t.keys {
		attrs = append(attrs, KeyKey.String(e.Key))
	}
	return attrs
}

// linkTo links a span to sc if sc is valid.
func linkTo(sc trace.SpanContext) trace.SpanStartOption {
	if !sc.IsValid() {
		return trace.WithAttributes()
	}
	return trace.WithLinks(trace.Link{SpanContext: sc})
}

// fail marks a span as failed. kind must be from a closed set.
func fail(span trace.Span, kind string, err error) {
	text := kind
	if err != nil {
		text = err.Error()
	}
	span.SetAttributes(ErrorTypeKey.String(kind))
	span.SetStatus(codes.Error, text)
}

// setGrant records the number in a holder's field "<client id>:<n>", by which spans and log records can be matched.
// The client id names a host and is omitted.
func setGrant(span trace.Span, holder string) {
	if n, err := strconv.ParseInt(holder[strings.LastIndexByte(holder, ':')+1:], 10, 64); err == nil {
		span.SetAttributes(GrantKey.Int64(n))
	}
}
