package library_test

import (
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
)

func TestBudget_NamesAreRead(t *testing.T) {
	want := library.Budget{Handoffs: 3, Time: 1500 * time.Millisecond}
	if got, ok := library.BudgetOf(want.Name()); !ok || got != want {
		t.Errorf("%s is read as %v, %v", want.Name(), got, ok)
	}
	l, err := library.For(want.Name(), library.Short)
	if err != nil || l.Name != want.Name() || !l.Fair || !strings.Contains(l.Settings, "MaxHandoffs 3, MaxHandoffTime 1.5s") {
		t.Errorf("%+v, %v", l, err)
	}
	for _, name := range []string{library.AnteroomFair, "redsync@3,1s", "anteroom-fair@3", "anteroom-fair@x,1s", "anteroom-fair@3,1"} {
		if b, ok := library.BudgetOf(name); ok {
			t.Errorf("%s has the budget %v", name, b)
		}
	}
}
