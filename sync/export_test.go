package anteroom

import "time"

// ClockJumped and WasLate report what a test cannot cause in virtual time: there a machine
// does not sleep and no process is stopped.
func (m *Manager) ClockJumped(d time.Duration) { m.jumped(d) }

func (m *Manager) WasLate(d time.Duration) { m.stalled(d) }
