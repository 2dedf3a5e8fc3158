package anteroom_test

import (
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// hooks returns an Observer of those methods of x that are called as a hook is.
func hooks(x any) *observe.Observer {
	o := &observe.Observer{}
	if x, is := x.(interface {
		Acquired(string, observe.Outcome, time.Duration)
	}); is {
		o.Acquired = x.Acquired
	}
	if x, is := x.(interface{ Called(class, how string) }); is {
		o.Called = x.Called
	}
	if x, is := x.(interface {
		Released(string, observe.Outcome, time.Duration)
	}); is {
		o.Released = x.Released
	}
	if x, is := x.(interface {
		Renewed(string, observe.Outcome, time.Duration)
	}); is {
		o.Renewed = x.Renewed
	}
	if x, is := x.(interface {
		Lost(string, observe.LossReason)
	}); is {
		o.Lost = x.Lost
	}
	if x, is := x.(interface {
		Command(name, outcome string, took time.Duration)
	}); is {
		o.Command = x.Command
	}
	if x, is := x.(interface{ Checked(check, finding string) }); is {
		o.Checked = x.Checked
	}
	if x, is := x.(interface {
		Recovered(check, action, outcome string)
	}); is {
		o.Recovered = x.Recovered
	}
	if x, is := x.(interface{ Alert(string, string, bool) }); is {
		o.Alert = x.Alert
	}
	if x, is := x.(interface{ Subscription(bool) }); is {
		o.Subscription = x.Subscription
	}
	if x, is := x.(interface{ EventRaised(observe.EventKind, bool) }); is {
		o.EventRaised = x.EventRaised
	}
	return o
}
