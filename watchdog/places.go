package watchdog

import (
	"iter"
	"math"
	"slices"
	"time"
)

// places is the list of holds with the moment at which each is to be visited, in no order.
// The moment is kept beside the pointer, and the first one of each stretch of the list again
// beside those of the others, so that the holds that want nothing are passed over without
// being touched: with 100,000 holds a turn at which one of them is due costs a microsecond.
type places struct {
	list  []place
	first []time.Duration // of each stretch; may be too early, never too late
	from  int             // the stretch that due begins with
}

type place struct {
	at   time.Duration // not before: the hold's next look, question or deadline, see Watchdog.plan
	hold *hold
}

const (
	// never is later than every moment.
	never = time.Duration(math.MaxInt64)
	// stretch is the number of places whose first moment is kept.
	stretch = 256
)

// add takes a hold in, to be visited at that moment.
func (p *places) add(h *hold, at time.Duration) {
	h.place = int32(len(p.list))
	p.list = append(p.list, place{hold: h})
	if len(p.list) > stretch*len(p.first) {
		p.first = append(p.first, never)
	}
	p.set(h, at)
}

// remove takes a hold out; the last one takes its place.
func (p *places) remove(h *hold) {
	last := len(p.list) - 1
	moved := p.list[last]
	p.list[last] = place{}
	p.list = p.list[:last]
	p.first = p.first[:(last+stretch-1)/stretch]
	if moved.hold != h {
		p.list[h.place], moved.hold.place = moved, h.place
		p.set(moved.hold, moved.at)
	}
	h.place = -1
}

// set says when a hold is visited next.
func (p *places) set(h *hold, at time.Duration) {
	p.list[h.place].at = at
	p.first[h.place/stretch] = min(p.first[h.place/stretch], at)
}

// allDue makes every hold due.
func (p *places) allDue() {
	for i := range p.list {
		p.list[i].at = 0
	}
	for i := range p.first {
		p.first[i] = 0
	}
}

// due walks through the holds whose moment has come. Each has to be given another moment,
// at once or later; until then it is not found again. Meanwhile no hold may be added or
// removed.
func (p *places) due(now time.Duration) iter.Seq[*hold] {
	return func(yield func(*hold) bool) {
		for n := range p.first {
			s := (p.from + n) % len(p.first)
			if p.first[s] > now {
				continue
			}
			p.first[s] = never
			for i := s * stretch; i < min((s+1)*stretch, len(p.list)); i++ {
				if at := p.list[i].at; at > now {
					p.first[s] = min(p.first[s], at)
				} else if !yield(p.list[i].hold) {
					return
				}
			}
		}
	}
}

// soonest returns when the first hold is to be visited; never without one.
func (p *places) soonest() time.Duration {
	if len(p.first) == 0 {
		return never
	}
	return slices.Min(p.first)
}

// clone returns a copy that has no more memory than it needs.
func (p *places) clone() places {
	return places{list: slices.Clone(p.list), first: slices.Clone(p.first)}
}
