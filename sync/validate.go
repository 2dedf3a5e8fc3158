package anteroom

import (
	"cmp"
	"fmt"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Limits and defaults of LockConfig, named where more than one place needs them.
const (
	maxKey              = 64 << 10
	minLease            = 100 * time.Millisecond
	maxLease            = 24 * time.Hour
	defaultLease        = 30 * time.Second
	defaultPeriod       = 5 * time.Second
	defaultHandoffs     = 10_000
	defaultHandoffTime  = 50 * time.Millisecond
	defaultThreshold    = 2
	minRecordTime       = time.Hour            // more than clocks of servers differ by
	maxRecordTime       = 366 * 24 * time.Hour // what is used once a year
	defaultClass        = "default"
	maxCommandTimeout   = time.Minute
	smallestTimeoutUnit = time.Millisecond
)

// Validate reports the first field that is out of bounds as an error that wraps
// ErrConfig and names field and bound, or nil. Zero values stand for defaults.
func (c LockConfig) Validate() error {
	_, err := c.normal()
	return err
}

// normal returns c with its defaults filled in, or an error wrapping ErrConfig.
func (c LockConfig) normal() (LockConfig, error) {
	if err := validKey(c.Key); err != nil {
		return c, err
	}
	return c.normalSettings()
}

func validKey(key string) error {
	if key == "" {
		return configError("Key", "is empty; give the lock a name")
	}
	if len(key) > maxKey {
		return configError("Key", "has %d bytes; at most %d are allowed", len(key), maxKey)
	}
	if prefix, reserved := lettucecompat.Reserved(key); reserved {
		return configError("Key", "begins with %q, where the library keeps its fencing records; choose another name", prefix)
	}
	return nil
}

// normalSettings does the same for all fields but Key.
func (c LockConfig) normalSettings() (LockConfig, error) {
	if c.Name == "" {
		c.Name = defaultClass
	}
	if len(c.Name) > 64 {
		return c, configError("Name", "has %d bytes; at most 64 are allowed", len(c.Name))
	}
	if err := c.normalTimes(); err != nil {
		return c, err
	}
	if err := c.normalTurns(); err != nil {
		return c, err
	}
	if c.Reentrancy > NotReentrant {
		return c, configError("Reentrancy", "is %d; use ByGoroutine or NotReentrant", c.Reentrancy)
	}
	if c.Recovery > RecoverReacquire {
		return c, configError("Recovery", "is %d; use one of the Recover constants", c.Recovery)
	}
	if c.Recovery == RecoverReacquire && !c.Fencing {
		return c, configError("Recovery", "is RecoverReacquire, which needs Fencing")
	}
	if c.FenceRecordTime == 0 {
		c.FenceRecordTime = lettucecompat.DefaultRecordTime
	}
	if err := inBounds("FenceRecordTime", c.FenceRecordTime, max(minRecordTime, 2*c.LeaseTime), maxRecordTime, ""); err != nil {
		return c, err
	}
	if c.AlertThreshold == 0 {
		c.AlertThreshold = defaultThreshold
	}
	if c.AlertThreshold < 1 || c.AlertThreshold > 1000 {
		return c, configError("AlertThreshold", "is %d; it must be from 1 to 1000", c.AlertThreshold)
	}
	if c.LongWait > 0 {
		if err := inBounds("LongWait", c.LongWait, minLongWait, maxLongWait, ""); err != nil {
			return c, err
		}
	}
	c.LongWait = max(c.LongWait, -1)
	if c.Replicas < 0 || c.Replicas > 16 {
		return c, configError("Replicas", "is %d; it must be from 0 to 16", c.Replicas)
	}
	if c.ReplicaTimeout == 0 {
		c.ReplicaTimeout = min(c.LeaseTime/10, 500*time.Millisecond)
	}
	return c, inBounds("ReplicaTimeout", c.ReplicaTimeout, smallestTimeoutUnit, c.LeaseTime/3, "LeaseTime/3")
}

func (c *LockConfig) normalTimes() error {
	if c.LeaseTime == 0 {
		c.LeaseTime = defaultLease
	}
	if err := inBounds("LeaseTime", c.LeaseTime, minLease, maxLease, ""); err != nil {
		return err
	}
	if c.RenewalTime == 0 {
		c.RenewalTime = c.LeaseTime / 3
	}
	if c.RenewalTime > c.LeaseTime/2 {
		return configError("RenewalTime", "is %v; it must be at most LeaseTime/2, here %v, so that one renewal may fail", c.RenewalTime, c.LeaseTime/2)
	}
	if c.RenewalTime > 0 && c.RenewalTime < 10*time.Millisecond {
		return configError("RenewalTime", "is %v; it must be at least 10ms, or negative for a fixed lease", c.RenewalTime)
	}
	if c.RenewalTime < 0 {
		c.RenewalTime = -1
	}
	if c.Margin == 0 {
		c.Margin = defaultMargin(c.LeaseTime)
	}
	if err := inBounds("Margin", c.Margin, time.Millisecond, c.LeaseTime/10, "LeaseTime/10"); err != nil {
		return err
	}
	if c.WatchdogPeriod == 0 {
		c.WatchdogPeriod = defaultPeriod
	}
	return inBounds("WatchdogPeriod", c.WatchdogPeriod, 10*time.Millisecond, time.Hour, "")
}

func (c *LockConfig) normalTurns() error {
	switch {
	case c.MaxHandoffs == 0:
		c.MaxHandoffs = defaultHandoffs
	case c.MaxHandoffs < -1 || c.MaxHandoffs > 65535:
		return configError("MaxHandoffs", "is %d; it must be from 1 to 65535, or -1 for none", c.MaxHandoffs)
	}
	if c.MaxHandoffTime == 0 {
		c.MaxHandoffTime = defaultHandoffTime
	}
	if c.MaxHandoffTime < time.Millisecond {
		return configError("MaxHandoffTime", "is %v; it must be at least 1ms", c.MaxHandoffTime)
	}
	if err := inBounds("MinHold", c.MinHold, 0, maxLease, ""); err != nil {
		return err
	}
	if c.RenewalTime < 0 && c.MinHold > c.LeaseTime {
		return configError("MinHold", "is %v, longer than the fixed lease of %v", c.MinHold, c.LeaseTime)
	}
	if c.MaxHold < 0 {
		return configError("MaxHold", "is %v; it must not be negative", c.MaxHold)
	}
	if c.MaxHold > 0 && c.MaxHold < c.MinHold {
		return configError("MaxHold", "is %v, shorter than MinHold (%v)", c.MaxHold, c.MinHold)
	}
	return nil
}

// defaultMargin is the rule of LockConfig.Margin, also for a lease of one hold.
func defaultMargin(lease time.Duration) time.Duration {
	return min(max(lease/20, 100*time.Millisecond), lease/10)
}

func inBounds(field string, d, low, high time.Duration, highName string) error {
	if d >= low && d <= high {
		return nil
	}
	if highName != "" {
		return configError(field, "is %v; it must be from %v to %s, here %v", d, low, highName, high)
	}
	return configError(field, "is %v; it must be from %v to %v", d, low, high)
}

func configError(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrConfig, field, fmt.Sprintf(format, args...))
}

// differs returns the name of the first field in which two normal configurations of one
// key contradict each other, "" where they can be used side by side. What belongs to a
// hold does not count (LeaseTime, RenewalTime, Margin), nor what only names or reports it.
func (c LockConfig) differs(o LockConfig) string {
	switch {
	case c == o:
		return ""
	case c.WatchdogPeriod != o.WatchdogPeriod:
		return "WatchdogPeriod"
	case c.Fair != o.Fair:
		return "Fair"
	case c.Reentrancy != o.Reentrancy:
		return "Reentrancy"
	case c.Fencing != o.Fencing:
		return "Fencing"
	case c.FenceRecordTime != o.FenceRecordTime:
		return "FenceRecordTime"
	case c.MaxHandoffs != o.MaxHandoffs:
		return "MaxHandoffs"
	case c.MaxHandoffTime != o.MaxHandoffTime:
		return "MaxHandoffTime"
	case c.MinHold != o.MinHold:
		return "MinHold"
	case c.MaxHold != o.MaxHold:
		return "MaxHold"
	case c.Recovery != o.Recovery:
		return "Recovery"
	case c.AlertThreshold != o.AlertThreshold:
		return "AlertThreshold"
	case c.Replicas != o.Replicas:
		return "Replicas"
	}
	return ""
}

// over returns c with the values of defaults in its zero fields. Key has none.
func (c LockConfig) over(defaults LockConfig) LockConfig {
	c.Name = cmp.Or(c.Name, defaults.Name)
	c.LeaseTime = cmp.Or(c.LeaseTime, defaults.LeaseTime)
	c.RenewalTime = cmp.Or(c.RenewalTime, defaults.RenewalTime)
	c.Margin = cmp.Or(c.Margin, defaults.Margin)
	c.WatchdogPeriod = cmp.Or(c.WatchdogPeriod, defaults.WatchdogPeriod)
	c.Fair = c.Fair || defaults.Fair
	c.Reentrancy = cmp.Or(c.Reentrancy, defaults.Reentrancy)
	c.Fencing = c.Fencing || defaults.Fencing
	c.FenceRecordTime = cmp.Or(c.FenceRecordTime, defaults.FenceRecordTime)
	c.MaxHandoffs = cmp.Or(c.MaxHandoffs, defaults.MaxHandoffs)
	c.MaxHandoffTime = cmp.Or(c.MaxHandoffTime, defaults.MaxHandoffTime)
	c.MinHold = cmp.Or(c.MinHold, defaults.MinHold)
	c.MaxHold = cmp.Or(c.MaxHold, defaults.MaxHold)
	c.LongWait = cmp.Or(c.LongWait, defaults.LongWait)
	c.Recovery = cmp.Or(c.Recovery, defaults.Recovery)
	c.AlertThreshold = cmp.Or(c.AlertThreshold, defaults.AlertThreshold)
	c.Replicas = cmp.Or(c.Replicas, defaults.Replicas)
	c.ReplicaTimeout = cmp.Or(c.ReplicaTimeout, defaults.ReplicaTimeout)
	return c
}
