package anteroom

import (
	"cmp"
	"reflect"
	"sync/atomic"

	"github.com/anteroom/anteroom/sync/internal/lock"
)

// settings is a normal LockConfig without its key, and what is derived from it. Locks that are
// configured alike share one, which is most of the memory of a Mutex: a program has many keys
// and few classes. It is never changed.
type settings struct {
	m        *Manager
	cfg      LockConfig // its Key is empty
	capacity int64      // of a Semaphore; ofMutex, ofRWMutex
	lock     lock.Settings
	refused  error // why no lock can be used with them; nil: one can
}

// What settings have as capacity that are of no Semaphore.
const (
	ofMutex   = 0
	ofRWMutex = -1
)

// kind names the kind of the lock, after "the key is in use as".
func (s *settings) kind() string {
	switch s.capacity {
	case ofMutex:
		return "a Mutex"
	case ofRWMutex:
		return "an RWMutex"
	}
	return "a Semaphore"
}

// settingsOf returns those with which k is in use.
func settingsOf(k *lock.Key) *settings { return k.Settings().Of.(*settings) }

func settingsIn(o *lock.Owner) *settings { return o.Settings().Of.(*settings) }

// maxShared bounds the settings that a Manager remembers; beyond it each Mutex has its own.
const maxShared = 256

// replicasFit refuses a wait for replicas that the client would break off.
func (m *Manager) replicasFit(cfg *LockConfig) error {
	read := m.wire.ReadTimeout()
	if cfg.Replicas == 0 || read == 0 || cfg.ReplicaTimeout < read {
		return nil
	}
	return configError("ReplicaTimeout", "is %v; it must be less than the client's ReadTimeout, here %v", cfg.ReplicaTimeout, read)
}

// use is what settings are found by.
type use struct {
	cfg      LockConfig
	capacity int64
}

// settings returns those of a normal configuration without its key.
func (m *Manager) settings(cfg LockConfig, capacity int64) *settings {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shared[use{cfg, capacity}]
	if s == nil {
		s = &settings{m: m, cfg: cfg, capacity: capacity, lock: lock.Settings{
			Class: cfg.Name, Fair: cfg.Fair,
			Lease:   lock.Lease{For: cfg.LeaseTime, Period: cfg.RenewalTime, Margin: cfg.Margin},
			Fencing: cfg.Fencing, RecordTime: cfg.FenceRecordTime,
			MaxHandoffs: max(cfg.MaxHandoffs, 0), MaxHandoffTime: cfg.MaxHandoffTime, Linger: cfg.Linger, MinHold: cfg.MinHold,
			Replicas: cfg.Replicas, ReplicaTimeout: cfg.ReplicaTimeout, StringHolders: cfg.StringHolders,
			Timeout: m.cfg.commandTimeout(cfg.LeaseTime), Shared: capacity != ofMutex, Capacity: max(capacity, 0),
		}}
		if cfg.Fencing && m.cfg.Dialect != DialectDesignDocument { // its clients count tokens one by one
			s.lock.MaxHandoffs = 0
		}
		if cfg.MinHold > 0 || cfg.RenewalTime < 0 || s.lock.MaxHandoffs == 0 { // MinHold counts from the grant, and is for each owner
			s.lock.Linger = 0
		}
		s.lock.Of = s
		s.lock.Prepare()
		if len(m.shared) < maxShared {
			m.shared[use{cfg, capacity}] = s
		}
	}
	return s
}

// equalFields are those in which all configurations of a key in use must be equal. The
// others only name or report it.
var equalFields = []string{
	"LeaseTime", "RenewalTime", "Margin", "WatchdogPeriod", "Fair", "Reentrant", "Fencing", "FenceRecordTime",
	"MaxHandoffs", "MaxHandoffTime", "Linger", "MinHold", "MaxHold", "Recovery", "AlertThreshold", "Replicas", "ReplicaTimeout", "StringHolders",
}

// differs returns the name of the first field in which two settings of one key contradict
// each other, "" where they can be used side by side.
func (s *settings) differs(o *settings) string {
	if s == o {
		return ""
	}
	a, b := reflect.ValueOf(&s.cfg).Elem(), reflect.ValueOf(&o.cfg).Elem()
	for _, name := range equalFields {
		if !a.FieldByName(name).Equal(b.FieldByName(name)) {
			return name
		}
	}
	return ""
}

// compatible returns nil where locks of one key can have both settings, and else an error that names what differs from
// those in use. It says where both are used, if call sites are recorded: the one in use at site.
func (m *Manager) compatible(inUse, s *settings, site string) error {
	field, text := inUse.differs(s), "differs from the configuration with which this key is in use"
	switch {
	case inUse.kind() != s.kind():
		field, text = "Key", "is in use as "+inUse.kind()+"; it cannot be "+s.kind()
	case field == "":
		return nil
	}
	if here := m.callSite(); here != "" {
		text += " (here: " + here
		if site != "" {
			text += ", in use: " + site
		}
		text += ")"
	}
	return configError(field, "%s", text)
}

// use returns the key with one reference more, or an error where it is in use with another configuration. last is what was found last
// time: that is right as long as it is in use, and its configuration was compared then.
func (m *Manager) use(last *atomic.Pointer[lock.Link], key string, s *settings) (*lock.Key, error) {
	if k := last.Load().Key(); k != nil && k.Use() {
		return k, nil
	}
	k := m.locks.Key(key, &s.lock)
	if err := m.compatible(settingsOf(k), s, siteOf(k)); err != nil {
		k.Done()
		return nil, err
	}
	last.Store(k.Link())
	return k, nil
}

// find returns the key, without a reference, or nil: also where it is in use as another kind of lock than that of s. Who is inside
// finds the key of that.
func (m *Manager) find(last *atomic.Pointer[lock.Link], key string, s *settings) *lock.Key {
	if k := last.Load().Key(); k != nil && !k.Over() {
		return k
	}
	k := m.locks.Find(key)
	if k == nil {
		return nil
	}
	k.Done()
	if settingsOf(k).kind() != s.kind() {
		return nil
	}
	return k
}

// withDefaults returns c with the values of defaults in its zero fields. Key has none. By hand: a program
// may make a Mutex for each operation, and reflection costs it a microsecond.
func (c LockConfig) withDefaults(defaults LockConfig) LockConfig {
	c.Name = cmp.Or(c.Name, defaults.Name)
	c.LeaseTime = cmp.Or(c.LeaseTime, defaults.LeaseTime)
	c.RenewalTime = cmp.Or(c.RenewalTime, defaults.RenewalTime)
	c.Margin = cmp.Or(c.Margin, defaults.Margin)
	c.WatchdogPeriod = cmp.Or(c.WatchdogPeriod, defaults.WatchdogPeriod)
	c.Fair = c.Fair || defaults.Fair
	c.Reentrant = c.Reentrant || defaults.Reentrant
	c.Fencing = c.Fencing || defaults.Fencing
	c.FenceRecordTime = cmp.Or(c.FenceRecordTime, defaults.FenceRecordTime)
	c.MaxHandoffs = cmp.Or(c.MaxHandoffs, defaults.MaxHandoffs)
	c.MaxHandoffTime = cmp.Or(c.MaxHandoffTime, defaults.MaxHandoffTime)
	c.Linger = cmp.Or(c.Linger, defaults.Linger)
	c.MinHold = cmp.Or(c.MinHold, defaults.MinHold)
	c.MaxHold = cmp.Or(c.MaxHold, defaults.MaxHold)
	c.LongWait = cmp.Or(c.LongWait, defaults.LongWait)
	c.Recovery = cmp.Or(c.Recovery, defaults.Recovery)
	c.AlertThreshold = cmp.Or(c.AlertThreshold, defaults.AlertThreshold)
	c.Replicas = cmp.Or(c.Replicas, defaults.Replicas)
	c.ReplicaTimeout = cmp.Or(c.ReplicaTimeout, defaults.ReplicaTimeout)
	c.StringHolders = c.StringHolders || defaults.StringHolders
	return c
}
