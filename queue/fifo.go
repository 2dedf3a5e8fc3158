package queue

// fifo answers "Who waits, in which order?": a doubly linked list through the waiters themselves, so that joining
// allocates nothing and removal from any place is O(1). It knows nothing of states and admission. Guarded by the
// Synchronizer's mu; the zero value is an empty list.
type fifo struct {
	head, tail *Waiter
	len, tries int32 // tries: how many of len are Try kinds
}

// empty reports whether nobody waits.
func (q *fifo) empty() bool { return q.head == nil }

// hasPatient reports whether a waiter is queued that goes on waiting after a refusal.
func (q *fifo) hasPatient() bool { return q.len > q.tries }

// insertAfter links w behind p, or as the first if p is nil.
func (q *fifo) insertAfter(p, w *Waiter) {
	w.prev = p
	if p == nil {
		w.next = q.head
		q.head = w
	} else {
		w.next = p.next
		p.next = w
	}
	if w.next == nil {
		q.tail = w
	} else {
		w.next.prev = w
	}
	q.len++
	if w.Kind.IsTry() {
		q.tries++
	}
}

// remove unlinks w, which must be linked here, and clears its links, so that a removed waiter keeps no other alive.
func (q *fifo) remove(w *Waiter) {
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.len--
	if w.Kind.IsTry() {
		q.tries--
	}
}
