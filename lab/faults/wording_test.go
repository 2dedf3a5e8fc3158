package faults_test

import (
	"context"
	"errors"
	"strings"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// wording names an error as a caller would compare it.
func wording(err error) string {
	if err == nil {
		return "nil"
	}
	var names []string
	for _, e := range []struct {
		err  error
		name string
	}{
		{anteroom.ErrNotAcquired, "ErrNotAcquired"},
		{anteroom.ErrUnavailable, "ErrUnavailable"},
		{anteroom.ErrUnknown, "ErrUnknown"},
		{anteroom.ErrNotHeld, "ErrNotHeld"},
		{anteroom.ErrLost, "ErrLost"},
		{anteroom.ErrClosed, "ErrClosed"},
		{anteroom.ErrConfig, "ErrConfig"},
		{context.DeadlineExceeded, "context.DeadlineExceeded"},
	} {
		if errors.Is(err, e.err) && (e.err != anteroom.ErrUnavailable || !errors.Is(err, anteroom.ErrUnknown)) { // the second is the first
			names = append(names, e.name)
		}
	}
	if len(names) == 0 {
		names = []string{err.Error()}
	}
	if e, ok := errors.AsType[*anteroom.Error](err); ok && e.Op == "release" && (e.Outcome == observe.OutcomeUnknown || e.Outcome == observe.OutcomeUnavailable) {
		names = append(names, "released in background")
	}
	return strings.Join(names, ", ")
}
