package anteroom

import "time"

// settings is a normal LockConfig without its key, and what follows from it. Locks that are
// configured alike share one, which is most of the memory of a Mutex and of an entry: a
// program has many keys and few classes. It is never changed.
type settings struct {
	cfg     LockConfig    // its Key is empty
	timeout time.Duration // of one command
	limit   string        // ends the name of the shard of a lease: the time limit of its renewals
	terms   terms         // of a caller without options
	tokens  int64         // fencing tokens that a turn needs: one for each owner it may have
	revives bool          // a renewal may put a field that has vanished into Redis again
}

// maxShared bounds the settings that a Manager remembers; beyond it each Mutex has its own.
const maxShared = 256

// settings returns those of a normal configuration without its key.
func (m *Manager) settings(cfg LockConfig) *settings {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shared[cfg]
	if s == nil {
		timeout := m.cfg.commandTimeout(cfg.LeaseTime)
		s = &settings{
			cfg: cfg, timeout: timeout, limit: "|" + timeout.String(),
			terms:   terms{lease: cfg.LeaseTime, period: cfg.RenewalTime, margin: cfg.Margin},
			revives: cfg.Recovery == RecoverReacquire,
		}
		if cfg.Fencing {
			s.tokens = int64(max(cfg.MaxHandoffs, 0)) + 1
		}
		if len(m.shared) < maxShared {
			m.shared[cfg] = s
		}
	}
	return s
}

// differs returns the name of the first field in which two settings differ, "" when they
// are equal.
func (s *settings) differs(o *settings) string {
	if s == o {
		return ""
	}
	return s.cfg.differs(o.cfg)
}

// longest is the longest time limit of a command that may keep a field with such a lease:
// an acquire or a renewal.
func (e *entry) longest(lease time.Duration) time.Duration {
	return max(e.timeout, e.m.cfg.commandTimeout(lease))
}
