package library

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Budget is how long a process may hand a lock off within itself.
type Budget struct {
	Handoffs int
	Time     time.Duration
}

// Name returns the name of Anteroom, fair, with that budget, for For:
// "anteroom-fair@1000,50ms".
func (b Budget) Name() string { return fmt.Sprintf("%s@%d,%v", AnteroomFair, b.Handoffs, b.Time) }

// BudgetOf returns the budget that a name has.
func BudgetOf(name string) (b Budget, ok bool) {
	_, text, ok := strings.Cut(name, "@")
	handoffs, limit, both := strings.Cut(text, ",")
	if !ok || !both {
		return Budget{}, false
	}
	var err1, err2 error
	b.Handoffs, err1 = strconv.Atoi(handoffs)
	b.Time, err2 = time.ParseDuration(limit)
	return b, err1 == nil && err2 == nil && b.Name() == name
}

// budgeted returns fair Anteroom, by Lock, with a budget other than the default.
func budgeted(b Budget) Library {
	l := anteroomByLock(true)
	l.Name = b.Name()
	l.Settings = fmt.Sprintf("as %s, but MaxHandoffs %d, MaxHandoffTime %v", AnteroomFair, b.Handoffs, b.Time)
	l.Open = func(addr string) (Client, error) {
		return openAnteroom(mindful(addr), anteroom.Config{Defaults: anteroom.LockConfig{
			Fair: true, MaxHandoffs: b.Handoffs, MaxHandoffTime: b.Time,
		}}, nil)
	}
	return l
}
