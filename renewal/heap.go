package renewal

// arity is the number of children of a heap node. With four, a heap of
// 100,000 leases is nine levels deep and the children compared at each level
// lie in one or two cache lines.
const arity = 4

// slot is one place in the heap. The key is kept beside the pointer, so that
// sifting compares without touching the leases.
type slot struct {
	at    int64 // when the lease wants the loop's attention, see Lease.attention
	lease *Lease
}

// leaseHeap is a min-heap of leases by the moment at which they want
// attention. Each lease knows its place (Lease.place), so it can be moved or
// removed in O(log n) wherever it stands. Not safe for concurrent use: it is
// guarded by Manager.mu.
type leaseHeap []slot

// push adds l with the given key. l must not be in the heap.
func (h *leaseHeap) push(l *Lease, at int64) {
	*h = append(*h, slot{at, l})
	h.up(len(*h) - 1)
}

// move gives l, which must be in the heap, another key.
func (h *leaseHeap) move(l *Lease, at int64) {
	i := int(l.place)
	(*h)[i].at = at
	if !h.down(i) {
		h.up(i)
	}
}

// remove takes l out. A lease that is not in the heap is left alone.
func (h *leaseHeap) remove(l *Lease) {
	i := int(l.place)
	if i < 0 {
		return
	}
	old := *h
	last := len(old) - 1
	moved := old[last]
	old[last] = slot{} // do not keep the lease alive from behind the slice
	*h = old[:last]
	l.place = -1
	if i == last {
		return
	}
	(*h)[i] = moved
	moved.lease.place = int32(i)
	if !h.down(i) {
		h.up(i)
	}
}

// rebuild restores the order after many keys were changed in place, in O(n).
func (h *leaseHeap) rebuild() {
	if len(*h) < 2 {
		return // also: the formula below has no answer for an empty heap
	}
	for i := (len(*h) - 2) / arity; i >= 0; i-- {
		h.down(i)
	}
}

// up moves the slot at i towards the root until its parent is not later.
func (h *leaseHeap) up(i int) {
	s := (*h)[i]
	for i > 0 {
		parent := (i - 1) / arity
		if (*h)[parent].at <= s.at {
			break
		}
		h.put(i, (*h)[parent])
		i = parent
	}
	h.put(i, s)
}

// down moves the slot at i towards the leaves until no child is earlier, and
// reports whether it moved.
func (h *leaseHeap) down(i int) bool {
	start, s, n := i, (*h)[i], len(*h)
	for {
		first := arity*i + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, n); c++ {
			if (*h)[c].at < (*h)[least].at {
				least = c
			}
		}
		if s.at <= (*h)[least].at {
			break
		}
		h.put(i, (*h)[least])
		i = least
	}
	h.put(i, s)
	return i != start
}

// put writes s to place i and tells the lease so.
func (h *leaseHeap) put(i int, s slot) {
	(*h)[i] = s
	s.lease.place = int32(i)
}
