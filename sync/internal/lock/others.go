package lock

import "time"

// This file is what a key knows of others: a foreign holder, and whether somebody stands behind its unit.

const (
	othersTime = 10 * time.Second // a foreign holder is believed to come again for so long
	toldTime   = time.Second      // a turn that has not asked for longer asks at its end
)

// watchLocked listens for the release of a foreign holder, which calls nobody.
func (k *Key) watchLocked() {
	if k.unwatch != nil || k.silenced {
		return
	}
	w, end := k.l.wire.Watch(k.name), make(chan struct{})
	k.unwatch = end
	go func() {
		defer w.Close()
		for {
			select {
			case <-w.C():
				k.hear(News{Word: Look})
				k.speak(false)
			case <-end:
				return
			}
		}
	}()
}

func (k *Key) unwatchLocked() {
	if k.unwatch != nil {
		close(k.unwatch)
		k.unwatch = nil
	}
}

// foreign reports whether a foreign holder was seen lately.
func (k *Key) foreign(now Moment) bool {
	at := k.others.Load()
	return at != 0 && now-Moment(at) < othersTime
}

// stands notes that somebody stands behind a unit. The message may come before the answer that gives the unit, and one
// about an earlier unit after it. Anybody can send one, so it must not be about a later one than there is.
func (k *Key) stands(unit uint64) {
	for old := k.told.Load(); unit > old && unit <= k.l.number.Load(); old = k.told.Load() {
		if k.told.CompareAndSwap(old, unit) {
			return
		}
	}
}

// somebody reports whether somebody may stand behind the unit, which this client has.
func (k *Key) somebody(unit uint64, now Moment) bool {
	return k.told.Load() == unit || now-Moment(k.asked.Load()) > toldTime
}
