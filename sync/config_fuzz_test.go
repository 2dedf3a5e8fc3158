package anteroom

import (
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// complaint is how a configuration error names its field.
var complaint = regexp.MustCompile(`: (?:Defaults\.)?([A-Z][A-Za-z]*) (is|has) `)

// FuzzConfig: every configuration is either refused by an error that names a field which
// is at fault, and its bound, or becomes a normal form within all documented bounds.
func FuzzConfig(f *testing.F) {
	f.Add("k", "", int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 0, 0, 0, uint8(0), false, false)
	f.Add("k", "orders", int64(time.Second), int64(-1), int64(50*time.Millisecond), int64(time.Second), int64(time.Millisecond), int64(time.Second), int64(time.Minute), int64(time.Millisecond), -1, 3, 2, uint8(3), true, true)
	f.Add("", "", int64(minLease), int64(10*time.Millisecond), int64(10*time.Millisecond), int64(time.Hour), int64(1)<<62, int64(maxLease), int64(1)<<62, int64(33*time.Millisecond), 65535, 1000, 16, uint8(0), false, false)
	f.Add("k", "", int64(minLease-1), int64(1), int64(-1), int64(-1), int64(-1), int64(-1), int64(-1), int64(-1), -2, -1, -1, uint8(9), true, false)
	f.Fuzz(func(t *testing.T, key, name string, lease, renewal, margin, watchdog, handoffTime, minHold, maxHold, replicaTimeout int64,
		handoffs, threshold, replicas int, recovery uint8, reentrant, fencing bool,
	) {
		c := LockConfig{
			Key: key, Name: name, LeaseTime: time.Duration(lease), RenewalTime: time.Duration(renewal), Margin: time.Duration(margin),
			WatchdogPeriod: time.Duration(watchdog), Reentrant: reentrant, Fencing: fencing, MaxHandoffs: handoffs,
			MaxHandoffTime: time.Duration(handoffTime), MinHold: time.Duration(minHold), MaxHold: time.Duration(maxHold),
			Recovery: Recovery(recovery), AlertThreshold: threshold, Replicas: replicas, ReplicaTimeout: time.Duration(replicaTimeout),
		}
		normal, err := c.normal()
		if (c.Validate() == nil) != (err == nil) {
			t.Fatalf("Validate says %v, normal %v", c.Validate(), err)
		}
		if err != nil {
			blame(t, c, err)
		} else {
			documented(t, c, normal)
		}

		// The same values, as what a Manager is configured with.
		m := Config{ClientID: name, CommandTimeout: time.Duration(watchdog), MaxInFlight: handoffs, RenewalInFlight: threshold, Defaults: c}
		m.Defaults.Key = ""
		made, err := m.normal()
		switch {
		case err != nil && !(errors.Is(err, ErrConfig) && complaint.MatchString(err.Error())):
			t.Fatalf("%+v: %v", m, err)
		case err == nil:
			again, err := made.normal()
			if err != nil || again.ClientID != made.ClientID || again.CommandTimeout != made.CommandTimeout {
				t.Fatalf("%+v becomes %+v: %v", made, again, err)
			}
			timeout := made.commandTimeout(max(normal.LeaseTime, minLease))
			if timeout < time.Millisecond || timeout > time.Minute || made.MaxInFlight < 0 || made.RenewalInFlight < 0 ||
				len(made.ClientID) > 115 || made.Logger == nil {
				t.Fatalf("out of bounds: %+v, time limit %v", made, timeout)
			}
		}
	})
}

// blame checks that err names a field and a bound, and that the field is at fault: with
// its default the complaint about it is gone.
func blame(t *testing.T, c LockConfig, err error) {
	t.Helper()
	named := complaint.FindStringSubmatch(err.Error())
	if !errors.Is(err, ErrConfig) || named == nil {
		t.Fatalf("%+v: %v", c, err)
	}
	field := reflect.ValueOf(&c).Elem().FieldByName(named[1])
	if !field.IsValid() {
		t.Fatalf("no field %q: %v", named[1], err)
	}
	if !regexp.MustCompile(`must|at most|longer|shorter|needs|use |is empty`).MatchString(err.Error()) {
		t.Fatalf("no bound: %v", err)
	}
	field.SetZero()
	if named[1] == "Key" {
		c.Key = "k"
	}
	if err := c.Validate(); err != nil && strings.Contains(err.Error(), ": "+named[1]+" ") {
		t.Fatalf("%s is blamed also with its default: %v", named[1], err)
	}
}

// documented checks a normal form against what LockConfig says of each field.
func documented(t *testing.T, c, n LockConfig) {
	t.Helper()
	between := func(field string, d, low, high time.Duration) {
		if d < low || d > high {
			t.Fatalf("%s is %v, not from %v to %v: %+v", field, d, low, high, n)
		}
	}
	between("LeaseTime", n.LeaseTime, 100*time.Millisecond, 24*time.Hour)
	if n.RenewalTime != -1 {
		between("RenewalTime", n.RenewalTime, 10*time.Millisecond, n.LeaseTime/2)
	}
	between("Margin", n.Margin, time.Millisecond, n.LeaseTime/10)
	between("WatchdogPeriod", n.WatchdogPeriod, 10*time.Millisecond, time.Hour)
	between("MaxHandoffTime", n.MaxHandoffTime, time.Millisecond, 1<<63-1)
	between("MinHold", n.MinHold, 0, 24*time.Hour)
	if n.RenewalTime < 0 {
		between("MinHold", n.MinHold, 0, n.LeaseTime)
	}
	if n.MaxHold != 0 {
		between("MaxHold", n.MaxHold, n.MinHold, 1<<63-1)
	}
	between("ReplicaTimeout", n.ReplicaTimeout, time.Millisecond, n.LeaseTime/3)
	counts := map[string][3]int{
		"Key": {len(n.Key), 1, 65536}, "Name": {len(n.Name), 1, 64}, "AlertThreshold": {n.AlertThreshold, 1, 1000},
		"Replicas": {n.Replicas, 0, 16}, "MaxHandoffs": {n.MaxHandoffs, -1, 65535},
	}
	for field, v := range counts {
		if v[0] < v[1] || v[0] > v[2] {
			t.Fatalf("%s is %d, not from %d to %d", field, v[0], v[1], v[2])
		}
	}
	if n.MaxHandoffs == 0 || n.Recovery > RecoverRelease {
		t.Fatalf("%+v", n)
	}
	if again, err := n.normal(); err != nil || again != n {
		t.Fatalf("not idempotent: %+v becomes %+v: %v", n, again, err)
	}
	// What was given is kept; only defaults are filled in, and a fixed lease has one form.
	was, is := reflect.ValueOf(c), reflect.ValueOf(n)
	for i := range was.NumField() {
		if name := was.Type().Field(i).Name; !was.Field(i).IsZero() && !was.Field(i).Equal(is.Field(i)) && !(name == "RenewalTime" && c.RenewalTime < 0) {
			t.Fatalf("%s was %v and became %v", name, was.Field(i), is.Field(i))
		}
	}
}
