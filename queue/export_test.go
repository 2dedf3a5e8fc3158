package queue

// AddReader is what AcquireShared does before it checks, and Withdraw what it does if the check fails.
func (s *Synchronizer) AddReader() { s.word.Add(oneReader) }
func (s *Synchronizer) Withdraw()  { s.withdraw() }

// Word is the word as it is.
func (s *Synchronizer) Raw() uint64 { return s.word.Load() }

// CountOn counts so many admissions.
func (s *Synchronizer) CountOn(admissions uint64) { s.word.Add(admissions * oneAdmission) }

// WhileLocked runs f while nobody else can have the lock.
func (s *Synchronizer) WhileLocked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// RenewedLocked and ShrinkLocked are Renewed, without a deadline, and Shrink for who has the lock.
func (s *Synchronizer) RenewedLocked(contended bool) Order { return s.renewedLocked(contended) }
func (s *Synchronizer) ShrinkLocked(keep int64) bool       { return s.shrinkLocked(keep) }
