package anteroom

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Limits of LockConfig, named where more than one place needs them.
const (
	maxKey          = 64 << 10
	minLease        = 100 * time.Millisecond
	maxLease        = 24 * time.Hour
	minRecordTime   = time.Hour            // more than clocks of servers differ by
	maxRecordTime   = 366 * 24 * time.Hour // what is used once a year
	defaultLongWait = 30 * time.Second     // the default LeaseTime
	minLongWait     = time.Second
	maxLongWait     = 24 * time.Hour
	maxInFlight     = 1024 // what a node's pool of connections is made for, and more
)

// builtIn are the defaults that do not depend on other fields.
var builtIn = LockConfig{
	Name: "default", LeaseTime: 30 * time.Second, WatchdogPeriod: 5 * time.Second,
	MaxHandoffs: 10_000, MaxHandoffTime: 20 * time.Millisecond,
	FenceRecordTime: lettucecompat.DefaultRecordTime, AlertThreshold: 2,
}

// Validate reports the first field that is out of bounds as an error that wraps
// ErrConfig and names field and bound, or nil. Zero values mean defaults.
func (c LockConfig) Validate() error {
	if _, err := c.normal(); err != nil {
		return newError("validate", c.Key, err)
	}
	return nil
}

// normal returns c with its defaults filled in, or an error wrapping ErrConfig.
func (c LockConfig) normal() (LockConfig, error) {
	if err := validKey(c.Key); err != nil {
		return c, err
	}
	return c.normalSettings()
}

// validKey allocates nothing for a valid key: a program may make a Mutex for each operation.
func validKey(key string) error {
	if key == "" {
		return configError("Key", "is empty; give the lock a name")
	}
	if len(key) > maxKey {
		return configError("Key", "has %d bytes; at most %d are allowed", len(key), maxKey)
	}
	if prefix, reserved := lettucecompat.DesignDocument.Reserved(key); reserved {
		return configError("Key", "begins with %q, where the library keeps keys of its own; choose another name", prefix)
	}
	return nil
}

// validKey also asks what the Manager's dialect and Redis have to say.
func (m *Manager) validKey(key string) error {
	if err := m.made(); err != nil {
		return err
	}
	if err := validKey(key); err != nil {
		return err
	}
	if err := m.wire.CheckKey(key); err != nil {
		return configError("Key", "is refused: %v", err)
	}
	return nil
}

// normalSettings does the same for all fields but Key.
func (c LockConfig) normalSettings() (LockConfig, error) {
	c = c.withDefaults(builtIn)
	c.RenewalTime = max(cmp.Or(c.RenewalTime, c.LeaseTime/3), -1)
	c.Margin = cmp.Or(c.Margin, defaultMargin(c.LeaseTime))
	c.LongWait = max(c.LongWait, -1)
	c.ReplicaTimeout = cmp.Or(c.ReplicaTimeout, min(c.LeaseTime/10, 500*time.Millisecond))
	fixed := c.RenewalTime < 0
	longest, of := time.Duration(maxLease), ""
	if fixed {
		longest, of = c.LeaseTime, "the fixed LeaseTime"
	}
	err := cmp.Or(
		within("LeaseTime", c.LeaseTime, minLease, maxLease, ""),
		within("RenewalTime", c.RenewalTime, 10*time.Millisecond, c.LeaseTime/2, "LeaseTime/2", -1),
		within("Margin", c.Margin, time.Millisecond, c.LeaseTime/10, "LeaseTime/10"),
		within("WatchdogPeriod", c.WatchdogPeriod, 10*time.Millisecond, time.Hour, ""),
		within("MaxHandoffTime", c.MaxHandoffTime, time.Millisecond, maxLease, ""),
		within("Linger", c.Linger, time.Millisecond, longest, of, 0),
		within("MinHold", c.MinHold, time.Millisecond, longest, of, 0),
		within("MaxHold", c.MaxHold, max(minLease, c.MinHold), maxRecordTime, "", 0),
		within("FenceRecordTime", c.FenceRecordTime, max(minRecordTime, 2*c.LeaseTime), maxRecordTime, ""),
		validLongWait(c.LongWait),
		within("ReplicaTimeout", c.ReplicaTimeout, time.Millisecond, c.LeaseTime/3, "LeaseTime/3"),
		within("the length of Name", len(c.Name), 0, 64, ""),
		within("MaxHandoffs", c.MaxHandoffs, 1, 65535, "", -1),
		within("Recovery", int(c.Recovery), 0, int(RecoverRelease), ""),
		within("AlertThreshold", c.AlertThreshold, 1, 1000, ""),
		within("Replicas", c.Replicas, 0, 16, ""),
	)
	return c, err
}

// validLongWait is for both settings of that name: from 0 on nothing of the kind is reported.
func validLongWait(d time.Duration) error {
	return within("LongWait", max(d, 0), minLongWait, maxLongWait, "", 0)
}

// defaultMargin is the rule of LockConfig.Margin, also for a lease of one hold.
func defaultMargin(lease time.Duration) time.Duration {
	return min(max(lease/20, 100*time.Millisecond), lease/10)
}

// within reports a value that is out of bounds and not one of those with a meaning of their own. highName says what the
// upper bound depends on.
func within[T int | time.Duration](field string, v, low, high T, highName string, special ...T) error {
	switch {
	case v >= low && v <= high || slices.Contains(special, v):
		return nil
	case highName != "":
		return configError(field, "is %v; it must be from %v to %s, here %v", v, low, highName, high)
	}
	return configError(field, "is %v; it must be from %v to %v", v, low, high)
}

func configError(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrConfig, field, fmt.Sprintf(format, args...))
}
