package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// A Hold that came with an error answers as one that was released does, so that neither a deferred Release nor a
// question panics.
func TestHold_NilIsNotHeld(t *testing.T) {
	var h *anteroom.Hold
	ctx := t.Context()
	for what, err := range map[string]error{
		"Err": h.Err(), "Release": h.Release(ctx), "Extend": h.Extend(ctx, time.Second), "Context": context.Cause(h.Context()),
	} {
		var e *anteroom.Error
		if !errors.Is(err, anteroom.ErrNotHeld) || !errors.As(err, &e) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if token, ok := h.Token(); ok || token != 0 || h.Held() || h.TTL() != 0 || h.Key() != "" || h.Holder() != "" ||
		!h.Deadline().IsZero() || !h.Since().IsZero() || h.Context().Err() == nil {
		t.Error("a nil Hold says that it is one")
	}
}
