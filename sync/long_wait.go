package anteroom

import (
	"cmp"
	"iter"
	"time"

	"github.com/anteroom/anteroom/internal/waits"
)

const (
	defaultLongWait = 30 * time.Second // the default LeaseTime
	minLongWait     = time.Second
	maxLongWait     = 24 * time.Hour
)

// waitedFor yields the live keys that have waiters.
func (m *Manager) waitedFor() iter.Seq[waits.Key] {
	return func(yield func(waits.Key) bool) {
		for _, k := range m.locks.All() {
			cfg := &settingsOf(k).cfg
			if k.Queue().Len() > 0 && !yield(waits.Key{
				Name: k.Name(), Queue: k.Queue(), Limit: cmp.Or(cfg.LongWait, m.cfg.LongWait),
				OwnerUnlocks: cfg.Reentrant, Of: k,
			}) {
				return
			}
		}
	}
}
