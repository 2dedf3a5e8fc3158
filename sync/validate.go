package anteroom

import (
	"cmp"
	"fmt"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Limits of LockConfig, named where more than one place needs them.
const (
	maxKey        = 64 << 10
	minLease      = 100 * time.Millisecond
	maxLease      = 24 * time.Hour
	minRecordTime = time.Hour            // more than clocks of servers differ by
	maxRecordTime = 366 * 24 * time.Hour // what is used once a year
)

// builtIn are the defaults that do not depend on other fields.
var builtIn = LockConfig{
	Name: "default", LeaseTime: 30 * time.Second, WatchdogPeriod: 5 * time.Second,
	MaxHandoffs: 10_000, MaxHandoffTime: 20 * time.Millisecond,
	FenceRecordTime: lettucecompat.DefaultRecordTime, AlertThreshold: 2,
}

// Validate reports the first field that is out of bounds as an error that wraps
// ErrConfig and names field and bound, or nil. Zero values stand for defaults.
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
	err := first(
		inBounds("LeaseTime", c.LeaseTime, minLease, maxLease, ""),
		inBounds("Margin", c.Margin, time.Millisecond, c.LeaseTime/10, "LeaseTime/10"),
		inBounds("WatchdogPeriod", c.WatchdogPeriod, 10*time.Millisecond, time.Hour, ""),
		inBounds("MinHold", c.MinHold, 0, maxLease, ""),
		inBounds("FenceRecordTime", c.FenceRecordTime, max(minRecordTime, 2*c.LeaseTime), maxRecordTime, ""),
		validLongWait(c.LongWait),
		inBounds("ReplicaTimeout", c.ReplicaTimeout, time.Millisecond, c.LeaseTime/3, "LeaseTime/3"),
	)
	fixed := c.RenewalTime < 0
	switch {
	case err != nil:
	case len(c.Name) > 64:
		err = configError("Name", "has %d bytes; at most 64 are allowed", len(c.Name))
	case c.RenewalTime > c.LeaseTime/2:
		err = configError("RenewalTime", "is %v; it must be at most LeaseTime/2, here %v, so that one renewal may fail", c.RenewalTime, c.LeaseTime/2)
	case !fixed && c.RenewalTime < 10*time.Millisecond:
		err = configError("RenewalTime", "is %v; it must be at least 10ms, or negative for a fixed lease", c.RenewalTime)
	case c.MaxHandoffs < -1 || c.MaxHandoffs > 65535:
		err = configError("MaxHandoffs", "is %d; it must be from 1 to 65535, or -1 for none", c.MaxHandoffs)
	case c.MaxHandoffTime < time.Millisecond:
		err = configError("MaxHandoffTime", "is %v; it must be at least 1ms", c.MaxHandoffTime)
	case fixed && c.MinHold > c.LeaseTime:
		err = configError("MinHold", "is %v, longer than the fixed lease of %v", c.MinHold, c.LeaseTime)
	case c.MaxHold < 0:
		err = configError("MaxHold", "is %v; it must not be negative", c.MaxHold)
	case c.MaxHold > 0 && c.MaxHold < c.MinHold:
		err = configError("MaxHold", "is %v, shorter than MinHold (%v)", c.MaxHold, c.MinHold)
	case c.Recovery > RecoverRelease:
		err = configError("Recovery", "is %d; use one of the Recover constants", c.Recovery)
	case c.AlertThreshold < 1 || c.AlertThreshold > 1000:
		err = configError("AlertThreshold", "is %d; it must be from 1 to 1000", c.AlertThreshold)
	case c.Replicas < 0 || c.Replicas > 16:
		err = configError("Replicas", "is %d; it must be from 0 to 16", c.Replicas)
	}
	return c, err
}

// validLongWait is for both settings of that name: from 0 on nothing of the kind is reported.
func validLongWait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return inBounds("LongWait", d, minLongWait, maxLongWait, "")
}

// defaultMargin is the rule of LockConfig.Margin, also for a lease of one hold.
func defaultMargin(lease time.Duration) time.Duration {
	return min(max(lease/20, 100*time.Millisecond), lease/10)
}

// first returns the first error of errs, nil where there is none.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func inBounds(field string, d, low, high time.Duration, highName string) error {
	switch {
	case d >= low && d <= high:
		return nil
	case highName != "":
		return configError(field, "is %v; it must be from %v to %s, here %v", d, low, highName, high)
	}
	return configError(field, "is %v; it must be from %v to %v", d, low, high)
}

func configError(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrConfig, field, fmt.Sprintf(format, args...))
}
