package library

import (
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Budget is for how long a process may pass a lock on within itself. Zero is the default.
type Budget struct {
	Handoffs int
	Time     time.Duration
}

// Budgeted returns Anteroom, by Lock, with a budget of hand-offs that is not the default.
func Budgeted(name string, b Budget) (Library, error) {
	if name != Anteroom && name != AnteroomFair {
		return Library{}, fmt.Errorf("%s has no budget of hand-offs", name)
	}
	l := anteroomByLock(name == AnteroomFair)
	l.Settings = fmt.Sprintf("MaxHandoffs %d, MaxHandoffTime %v (0: the default); otherwise %s", b.Handoffs, b.Time, l.Settings)
	l.Open = func(addr string) (Client, error) {
		return openAnteroom(addr, anteroom.Config{Defaults: anteroom.LockConfig{
			Fair: l.Fair, MaxHandoffs: b.Handoffs, MaxHandoffTime: b.Time,
		}}, nil)
	}
	return l, nil
}
