package queue

// IsLock tells whether the kind is Lock-style: its tenure stays locally locked
// after a loss, until its own exits.
func (k Kind) IsLock() bool { return k.isLock() }

// FailTries fails all Try-kind waiters with err, because Redis gave no usable
// answer to the attempt that they share. Everybody else stays.
func (s *Synchronizer) FailTries(err error) {
	if err == nil {
		panic("queue: FailTries with a nil error")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Word().State() == Acquiring && s.waiters.tries > 0 {
		s.failLocked(Kind.isTry, err)
	}
}

// HeadNote returns the Note of the first waiter, nil without waiters. An attempt
// is made for whoever is head when it is sent; he may have changed when it is
// answered.
func (s *Synchronizer) HeadNote() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters.empty() {
		return nil
	}
	return s.waiters.head.Note
}
