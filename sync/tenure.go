package anteroom

import "context"

// possession is a tenure by Acquire, with what its first hold needs.
type possession struct {
	tenure
	holdSet
}

// holdSet is the holds of a tenure that are to be told of a loss.
type holdSet struct {
	by     *Mutex          // through which the first hold came
	values context.Context // of the context with which the first hold was acquired
	first  holdState
	head   *holdState // of a list through next; guarded by entry.mu
}

func (s *holdSet) add(h *holdState) { h.next, s.head = s.head, h }

// remove takes h out, where it is in the list.
func (s *holdSet) remove(h *holdState) {
	for at := &s.head; *at != nil; at = &(*at).next {
		if *at == h {
			*at, h.next = h.next, nil
			return
		}
	}
}

// all lists the holds, so that the list may be read without the mutex.
func (s *holdSet) all() (list []*holdState) {
	for h := s.head; h != nil; h = h.next {
		list = append(list, h)
	}
	return list
}

// newPossession makes the place for a tenure, with its first hold registered: that is
// before its owner is admitted, so that no loss can miss it.
func newPossession(values context.Context) *tenure {
	p := new(possession)
	p.tenure.holds = &p.holdSet
	p.first.t, p.holdSet.values = &p.tenure, values
	p.add(&p.first)
	return &p.tenure
}
