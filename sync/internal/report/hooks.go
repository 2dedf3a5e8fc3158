package report

import (
	"reflect"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// allHooks returns o with a hook that does nothing in place of each that is nil.
func allHooks(o *observe.Observer) observe.Observer {
	var all observe.Observer
	if o != nil {
		all = *o
	}
	orNothing(&all.Acquired, func(string, observe.Outcome, time.Duration) {})
	orNothing(&all.Called, func(string, string) {})
	orNothing(&all.Released, func(string, observe.Outcome, time.Duration) {})
	orNothing(&all.Renewed, func(string, observe.Outcome, time.Duration) {})
	orNothing(&all.Lost, func(string, observe.LossReason) {})
	orNothing(&all.Command, func(string, string, time.Duration) {})
	orNothing(&all.Checked, func(string, string) {})
	orNothing(&all.Recovered, func(string, string, string) {})
	orNothing(&all.Alert, func(string, string, bool) {})
	orNothing(&all.Subscription, func(bool) {})
	orNothing(&all.EventRaised, func(observe.EventKind, bool) {})
	return all
}

func orNothing[F any](hook *F, nothing F) {
	if reflect.ValueOf(*hook).IsNil() {
		*hook = nothing
	}
}
