package queue

// Pack is the word's encoder; the decoders are exported.
func Pack(state State, count, handOffs int) Word { return pack(state, count, handOffs) }

// Waiting returns all waiters, first to last.
func (s *Synchronizer) Waiting() []WaiterInfo {
	_, infos := s.Look(-1)
	return infos
}
