package watchdog_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	wd "github.com/anteroom/anteroom/watchdog"
)

// expect compares what matters of a verdict, and that every accusation has a reason.
func expect(t *testing.T, v wd.Verdict, c wd.Check, h wd.Health, f wd.Finding) {
	t.Helper()
	if v.Check != c || v.Health != h || v.Finding != f {
		t.Errorf("verdict %v/%v/%v %q, want %v/%v/%v", v.Check, v.Health, v.Finding, v.Reason, c, h, f)
	}
	if (v.Reason == "") != (v.Health == wd.Healthy && v.Finding == wd.None) {
		t.Errorf("reason %q of a verdict %v/%v", v.Reason, v.Health, v.Finding)
	}
	if v.At.IsZero() {
		t.Error("a verdict without its moment")
	}
}

func TestCheckRenewal(t *testing.T) {
	t.Parallel()
	start := hold(1)
	for name, c := range map[string]struct {
		after time.Duration
		edit  func(*wd.Facts, *wd.RenewalStats)
		h     wd.Health
		f     wd.Finding
	}{
		"fresh":              {0, nil, wd.Healthy, wd.None},
		"at the slack's end": {15 * time.Second, nil, wd.Healthy, wd.None},
		"past the slack":     {15*time.Second + 1, nil, wd.Unhealthy, wd.RenewalLate},
		"one failure":        {time.Second, func(f *wd.Facts, _ *wd.RenewalStats) { f.RenewalFailures = 1 }, wd.Healthy, wd.None},
		"two failures":       {time.Second, func(f *wd.Facts, _ *wd.RenewalStats) { f.RenewalFailures = 2 }, wd.Unhealthy, wd.RenewalFailing},
		"fixed and old":      {20 * time.Second, func(f *wd.Facts, _ *wd.RenewalStats) { f.Fixed = true }, wd.Healthy, wd.None},
		"fixed and over":     {29 * time.Second, func(f *wd.Facts, _ *wd.RenewalStats) { f.Fixed = true }, wd.Unhealthy, wd.LeaseOver},
		"just over":          {28500 * time.Millisecond, func(f *wd.Facts, _ *wd.RenewalStats) { f.LastConfirmed = f.Deadline }, wd.Healthy, wd.None},
		"over":               {28751 * time.Millisecond, nil, wd.Unhealthy, wd.LeaseOver},
		"no deadline known":  {5 * time.Second, func(f *wd.Facts, _ *wd.RenewalStats) { f.Deadline = time.Time{} }, wd.Healthy, wd.None},
		"short renewal time": {260 * time.Millisecond, func(f *wd.Facts, _ *wd.RenewalStats) { f.RenewalTime = 20 * time.Millisecond }, wd.Healthy, wd.None},
		"loop stands still": {16 * time.Second, func(f *wd.Facts, s *wd.RenewalStats) {
			s.NextDue, s.LoopLastRound = f.Since.Add(9*time.Second), f.Since
		}, wd.Unhealthy, wd.RenewalStalled},
		"stalled but not due": {9 * time.Second, func(f *wd.Facts, s *wd.RenewalStats) { s.NextDue, s.LoopLastRound = f.Since, f.Since }, wd.Healthy, wd.None},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := start, wd.RenewalStats{}
			if c.edit != nil {
				c.edit(&f, &s)
			}
			expect(t, wd.CheckRenewal(start.Since.Add(c.after), f, s), wd.Renewal, c.h, c.f)
		})
	}
}

func TestCheckRenewalLoop(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		s wd.RenewalStats
		h wd.Health
		f wd.Finding
	}{
		"never turned, nothing due": {wd.RenewalStats{}, wd.Healthy, wd.None},
		"asleep for a day":          {wd.RenewalStats{LoopLastRound: ago(24 * time.Hour)}, wd.Healthy, wd.None},
		"due, turning":              {wd.RenewalStats{LoopLastRound: ago(time.Second), NextDue: ago(time.Minute)}, wd.Healthy, wd.None},
		"due, just now":             {wd.RenewalStats{LoopLastRound: ago(time.Minute), NextDue: ago(time.Second)}, wd.Healthy, wd.None},
		"due, standing still":       {wd.RenewalStats{LoopLastRound: ago(3 * time.Second), NextDue: ago(3 * time.Second)}, wd.Unhealthy, wd.RenewalStalled},
		"small window":              {wd.RenewalStats{Window: 9}, wd.Healthy, wd.None},
		"half fail":                 {wd.RenewalStats{Window: 10, SuccessRate: 0.5}, wd.Healthy, wd.None},
		"most fail":                 {wd.RenewalStats{Window: 10, SuccessRate: 0.4}, wd.Unhealthy, wd.RenewalFailing},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, wd.CheckRenewalLoop(now, 5*time.Second, c.s), wd.Renewal, c.h, c.f)
		})
	}
}

func TestCheckLockStatus(t *testing.T) {
	t.Parallel()
	f := hold(1)
	for name, c := range map[string]struct {
		edit func(*wd.Status)
		h    wd.Health
		f    wd.Finding
	}{
		"ours":              {func(*wd.Status) {}, wd.Healthy, wd.None},
		"no answer":         {func(s *wd.Status) { *s = wd.Status{Err: errors.New("timeout")} }, wd.Unknown, wd.None},
		"no answer, no why": {func(s *wd.Status) { *s = wd.Status{} }, wd.Unknown, wd.None},
		"neither nor":       {func(s *wd.Status) { s.Present = false }, wd.Unknown, wd.None},
		"gone":              {func(s *wd.Status) { *s = wd.Status{Answered: true, Gone: true} }, wd.Unhealthy, wd.FieldGone},
		"two fields":        {func(s *wd.Status) { s.Fields = 2 }, wd.Unhealthy, wd.ForeignField},
		"count 2":           {func(s *wd.Status) { s.Count = 2 }, wd.Unhealthy, wd.WrongCount},
		"no expiry":         {func(s *wd.Status) { s.TTL = -1 }, wd.Unhealthy, wd.TTLMissing},
		"TTL of a lease":    {func(s *wd.Status) { s.TTL = f.Lease }, wd.Healthy, wd.None},
		"TTL too long":      {func(s *wd.Status) { s.TTL = f.Lease + 5*time.Second }, wd.Unhealthy, wd.TTLTooLong},
		"about to expire":   {func(s *wd.Status) { s.TTL = 0 }, wd.Healthy, wd.None},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			c.edit(&s)
			expect(t, wd.CheckLockStatus(f.Since, f, s), wd.LockStatus, c.h, c.f)
		})
	}
	t.Run("extended", func(t *testing.T) {
		long, s := f, good()
		long.Deadline, s.TTL = f.Since.Add(time.Hour), time.Hour+3*time.Second
		expect(t, wd.CheckLockStatus(f.Since, long, s), wd.LockStatus, wd.Healthy, wd.None)
	})
}

func TestCheckHolder(t *testing.T) {
	t.Parallel()
	start := hold(1)
	now := start.Since.Add(time.Minute)
	scan := func(complete bool, g wd.Goroutine) wd.Goroutines {
		return wd.Goroutines{At: now, Complete: complete, Reason: "cut short", States: map[int64]wd.Goroutine{7: g}}
	}
	blocked := wd.Goroutine{State: "chan receive", Waited: 12 * time.Minute, Frame: "main.work (main.go:3)"}
	for name, c := range map[string]struct {
		edit func(*wd.Facts)
		g    wd.Goroutines
		h    wd.Health
		f    wd.Finding
	}{
		"reachable":                   {func(*wd.Facts) {}, wd.Goroutines{}, wd.Healthy, wd.None},
		"unreachable":                 {func(f *wd.Facts) { f.Reachable = false }, wd.Goroutines{}, wd.Unhealthy, wd.HolderUnreachable},
		"a fixed lease is never that": {func(f *wd.Facts) { f.Reachable, f.Fixed = false, true }, wd.Goroutines{}, wd.Healthy, wd.None},
		"at MaxHold":                  {func(f *wd.Facts) { f.MaxHold = time.Minute }, wd.Goroutines{}, wd.Healthy, wd.None},
		"over MaxHold":                {func(f *wd.Facts) { f.MaxHold = time.Minute - 1 }, wd.Goroutines{}, wd.Unhealthy, wd.OverMaxHold},
		"goroutine ended":             {func(f *wd.Facts) { f.Goroutine = 7 }, scan(true, wd.Goroutine{Ended: true}), wd.Unhealthy, wd.HolderGone},
		"ended outweighs MaxHold":     {func(f *wd.Facts) { f.Goroutine, f.MaxHold = 7, 1 }, scan(true, wd.Goroutine{Ended: true}), wd.Unhealthy, wd.HolderGone},
		"cut short, not seen":         {func(f *wd.Facts) { f.Goroutine = 7 }, scan(false, wd.Goroutine{Ended: true}), wd.Unknown, wd.None},
		"cut short, over MaxHold":     {func(f *wd.Facts) { f.Goroutine, f.MaxHold = 7, 1 }, scan(false, wd.Goroutine{Ended: true}), wd.Unhealthy, wd.OverMaxHold},
		"not asked about":             {func(f *wd.Facts) { f.Goroutine = 8 }, scan(true, wd.Goroutine{Ended: true}), wd.Healthy, wd.None},
		"taken after the scan":        {func(f *wd.Facts) { f.Goroutine, f.Since = 7, now }, scan(true, wd.Goroutine{Ended: true}), wd.Healthy, wd.None},
		"any goroutine may unlock":    {func(*wd.Facts) {}, scan(true, wd.Goroutine{Ended: true}), wd.Healthy, wd.None},
		"blocked is a remark":         {func(f *wd.Facts) { f.Goroutine = 7 }, scan(true, blocked), wd.Healthy, wd.HolderBlocked},
		"running":                     {func(f *wd.Facts) { f.Goroutine = 7 }, scan(true, wd.Goroutine{State: "running"}), wd.Healthy, wd.None},
	} {
		t.Run(name, func(t *testing.T) {
			f := start
			c.edit(&f)
			expect(t, wd.CheckHolder(now, f, c.g), wd.Holder, c.h, c.f)
		})
	}
	f := start
	f.Goroutine = 7
	const told = `goroutine 7 is in "chan receive" for 12 minutes in main.work (main.go:3)`
	if v := wd.CheckHolder(now, f, scan(true, blocked)); v.Reason != told {
		t.Errorf("reason %q, want %q", v.Reason, told)
	}
}

func TestCheckConnection(t *testing.T) {
	t.Parallel()
	now, broken := time.Now(), errors.New("broken")
	expect(t, wd.CheckConnection(now, wd.Probe{}), wd.Connection, wd.Healthy, wd.None)
	expect(t, wd.CheckConnection(now, wd.Probe{DeliveryErr: broken}), wd.Connection, wd.Unhealthy, wd.DeliveryDead)
	expect(t, wd.CheckConnection(now, wd.Probe{PingErr: broken, DeliveryErr: broken}), wd.Connection, wd.Unhealthy, wd.RedisUnreachable)
}

func TestCheckRecovery(t *testing.T) {
	t.Parallel()
	at := time.Now()
	later := at.Add(time.Second)
	a := wd.Attempt{Check: wd.Renewal, Finding: wd.RenewalLate, Action: wd.ActionHurryRenewal, At: at}
	waiting := a
	waiting.Until = later.Add(1)
	verdict := func(h wd.Health, f wd.Finding, at time.Time) wd.Verdict {
		return wd.Verdict{Check: wd.Renewal, Health: h, Finding: f, At: at}
	}
	for name, c := range map[string]struct {
		a wd.Attempt
		v wd.Verdict
		h wd.Health
		f wd.Finding
	}{
		"healthy since":      {a, verdict(wd.Healthy, wd.None, later), wd.Healthy, wd.None},
		"still there":        {a, verdict(wd.Unhealthy, wd.RenewalLate, later), wd.Unhealthy, wd.RecoveryFailed},
		"still may take":     {waiting, verdict(wd.Unhealthy, wd.RenewalLate, later), wd.Unknown, wd.None},
		"not looked since":   {a, verdict(wd.Unhealthy, wd.RenewalLate, at), wd.Unknown, wd.None},
		"something else":     {a, verdict(wd.Unhealthy, wd.RenewalFailing, later), wd.Unknown, wd.None},
		"no verdict":         {a, verdict(wd.Unknown, wd.None, later), wd.Unknown, wd.None},
		"of another check":   {a, wd.Verdict{Check: wd.Holder, Health: wd.Healthy, At: later}, wd.Unknown, wd.None},
		"healthy while open": {waiting, verdict(wd.Healthy, wd.None, later), wd.Healthy, wd.None},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, wd.CheckRecovery(later, c.a, c.v), wd.Recovery, c.h, c.f)
		})
	}
}

// TestNames keeps the label values: each value of a closed set has a name of its own.
func TestNames(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	add := func(s string) {
		if strings.HasSuffix(s, " ") || strings.HasSuffix(s, "invalid") || names[s] {
			t.Errorf("name %q is missing or given twice", s)
		}
		names[s] = true
	}
	for c := wd.Renewal; c <= wd.Recovery; c++ {
		add("check " + c.String())
	}
	for h := wd.Unknown; h <= wd.Unhealthy; h++ {
		add("health " + h.String())
	}
	for f := wd.None; f <= wd.RecoveryFailed; f++ {
		add("finding " + f.String())
	}
	for s := wd.Default; s <= wd.Release; s++ {
		add("strategy " + s.String())
	}
	for o := wd.Reported; o <= wd.Unsettled; o++ {
		add("outcome " + o.String())
	}
	for _, bad := range []string{(wd.Recovery + 1).String(), (wd.RecoveryFailed + 1).String(), (wd.Unsettled + 1).String()} {
		if bad != "invalid" {
			t.Errorf("a value out of the set is called %q", bad)
		}
	}
	if wd.Recovery.String() != "recovery" || wd.LockStatus.String() != "lock_status" || wd.RecoveryFailed.String() != "recovery_failed" {
		t.Error("the names do not stand at their values")
	}
}
