// Package heap keeps items ordered by the time at which each is due, the earliest on top. The renewal of leases and
// the watchdog use one each.
package heap

import "iter"

// arity is the number of children of a node. With four, a heap of 100,000 items is nine levels deep, and the children
// compared at each level are in one or two cache lines.
const arity = 4

// Item is something that can be in one Heap at a time.
type Item interface {
	// Place returns where the item's place is stored. Only the Heap writes there; 0 means that the item is in no
	// Heap.
	Place() *int32
}

// slot is one place in the heap. The time is stored beside the item, so that sifting compares without touching the
// items.
type slot[T Item] struct {
	at   int64
	item T
}

// Heap is a min-heap of items by time. Each item knows its place, so any item can be moved or removed in O(log n).
// The zero value is an empty heap. A Heap is not safe for concurrent use.
type Heap[T Item] struct {
	slots []slot[T]
}

// Len returns the number of items.
func (h *Heap[T]) Len() int { return len(h.slots) }

// First returns the item on top and its time. The heap must not be empty.
func (h *Heap[T]) First() (item T, at int64) { return h.slots[0].item, h.slots[0].at }

// All iterates over the items, in no particular order. The heap must not change meanwhile.
func (h *Heap[T]) All() iter.Seq2[T, int64] {
	return func(yield func(T, int64) bool) {
		for _, s := range h.slots {
			if !yield(s.item, s.at) {
				return
			}
		}
	}
}

// Set sets the item's time, and adds the item if it is in no heap.
func (h *Heap[T]) Set(item T, at int64) {
	place := *item.Place()
	if place == 0 {
		h.slots = append(h.slots, slot[T]{at, item})
		h.up(len(h.slots) - 1)
		return
	}
	i := int(place - 1)
	h.slots[i].at = at
	if !h.down(i) {
		h.up(i)
	}
}

// Remove removes the item. It does nothing if the item is in no heap.
func (h *Heap[T]) Remove(item T) {
	place := item.Place()
	if *place == 0 {
		return
	}
	i, last := int(*place-1), len(h.slots)-1
	moved := h.slots[last]
	h.slots[last] = slot[T]{} // so that the slice keeps no removed item alive
	h.slots = h.slots[:last]
	*place = 0
	if i == last {
		return
	}
	h.put(i, moved)
	if !h.down(i) {
		h.up(i)
	}
}

// SetAll sets the time of every item, in O(n).
func (h *Heap[T]) SetAll(at func(T) int64) {
	for i := range h.slots {
		h.slots[i].at = at(h.slots[i].item)
	}
	for i := len(h.slots) - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Clip releases the memory that a larger heap has left behind.
func (h *Heap[T]) Clip() { h.slots = append([]slot[T](nil), h.slots...) }

// up moves the slot at i towards the root until its parent is not later.
func (h *Heap[T]) up(i int) {
	s := h.slots[i]
	for i > 0 {
		parent := (i - 1) / arity
		if h.slots[parent].at <= s.at {
			break
		}
		h.put(i, h.slots[parent])
		i = parent
	}
	h.put(i, s)
}

// down moves the slot at i towards the leaves until no child is earlier, and reports whether it moved.
func (h *Heap[T]) down(i int) bool {
	start, s, n := i, h.slots[i], len(h.slots)
	for {
		first := arity*i + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, n); c++ {
			if h.slots[c].at < h.slots[least].at {
				least = c
			}
		}
		if s.at <= h.slots[least].at {
			break
		}
		h.put(i, h.slots[least])
		i = least
	}
	h.put(i, s)
	return i != start
}

// put stores s at place i and records the place in the item.
func (h *Heap[T]) put(i int, s slot[T]) {
	h.slots[i] = s
	*s.item.Place() = int32(i + 1)
}
