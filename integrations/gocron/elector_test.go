package anteroomgocron

import (
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

func elector(t *testing.T, m *anteroom.Manager) *Elector {
	t.Helper()
	e, err := NewElector(m, anteroom.LockConfig{}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// leads waits until e leads.
func leads(t *testing.T, e *Elector) {
	t.Helper()
	for limit := time.Now().Add(pace.Hang); e.IsLeader(t.Context()) != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it does not lead: %v", e.IsLeader(t.Context()))
		}
	}
}

func TestElector_OneRunsTheJobs(t *testing.T) {
	addr := testredis.Start(t).Addr()
	first := elector(t, manager(t, addr))
	leads(t, first)
	m := manager(t, addr)
	second := elector(t, m)

	ran := make(chan int, 1000)
	for i, e := range []*Elector{first, second} {
		s, err := gocron.NewScheduler(gocron.WithDistributedElector(e))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func() { ran <- i })); err != nil {
			t.Fatal(err)
		}
		s.Start()
		defer shutdown(t, s)
	}
	for range 20 {
		if i := receive(t, ran); i != 0 {
			t.Fatal("it ran where nobody leads")
		}
	}
	first.Close() // hands over: the lease of 30 s is not waited for
	leads(t, second)
	if first.IsLeader(t.Context()) == nil {
		t.Error("it leads after Close")
	}
	for receive(t, ran) != 1 {
	}
	_ = m.CloseWithin(time.Millisecond) // it leads: that is reported
	<-second.ended
	if err := second.IsLeader(t.Context()); !errors.Is(err, anteroom.ErrClosed) {
		t.Errorf("after the Manager's Close: %v, want ErrClosed", err)
	}
}

func TestNewElector_RefusesMinHold(t *testing.T) {
	m := manager(t, testredis.Start(t).Addr())
	if _, err := NewElector(m, anteroom.LockConfig{MinHold: time.Second}, ""); !errors.Is(err, anteroom.ErrConfig) {
		t.Errorf("%v, want ErrConfig", err)
	}
}
