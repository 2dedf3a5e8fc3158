package conversation

import "testing"

// A message that another client waits may come before the answer that gives the units. A later answer knows better.
func TestTurn_AMessageBeforeTheAnswer(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	var o Contention
	o = o.Notified(10, &p.c)
	if o.Waits {
		t.Error("another waits for units that nobody has")
	}
	p.handles(has(10, 10, 1, kept), Granted)
	if o = o.Answered(10, false); !o.Waits {
		t.Error("the message is forgotten")
	}
	if o = o.Notified(11, &p.c).Answered(11, false); o.Waits {
		t.Error("a message about what is still to come counts")
	}
	if o = o.Notified(10, &p.c); !o.Waits {
		t.Error("a message about the present units does not count")
	}
}

// Units that nobody uses stay for 10 ms after the last use that was seen, and for one who waits.
func TestTurn_Linger(t *testing.T) {
	var l Linger
	keeps := func(now Moment, u Use, want int64, ask Moment) {
		t.Helper()
		u.Units, u.Readers = 1, true
		var keep int64
		var at Moment
		if l, keep, at = l.Keep(u, 1, now); keep != want || at != ask {
			t.Errorf("at %v: keeps %d until %v, want %d until %v", now, keep, at, want, ask)
		}
	}
	keeps(second, Use{Used: 1, Admissions: 1}, 1, second+10*ms)
	keeps(second+5*ms, Use{Admissions: 1}, 1, second+15*ms)
	keeps(second+14*ms, Use{Admissions: 2}, 1, second+24*ms) // it was used meanwhile
	keeps(second+24*ms, Use{Admissions: 2}, 0, second+34*ms)
	keeps(second+24*ms, Use{Admissions: 2, Waiting: true}, 1, Never)
	keeps(second+25*ms, Use{Admissions: 2, Idle: true}, 0, second+35*ms)
}
