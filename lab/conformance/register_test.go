package conformance_test

import (
	"sync"

	anteroom "github.com/anteroom/anteroom/sync"
)

// register is a resource that checks fencing tokens: one counter for each key, which holders of the key's lock read
// and write. It raises its fence by the token of each visit, even a read, and refuses older tokens. (A fence raised
// only by writes lets an old holder write between a new one's read and write, and loses that update.)
type register struct {
	mu    sync.Mutex
	cells map[string]*cell
}

type cell struct {
	fence    int64 // the newest token seen
	value    int
	accepted int // writes
	refused  int // visits with an older token
	older    int // writes accepted with a token older than one accepted before
	newest   int64
	inside   int // holders at work
	overlaps int // times that one came in while another was
}

func newRegister() *register { return &register{cells: map[string]*cell{}} }

func (r *register) cellLocked(key string) *cell {
	c := r.cells[key]
	if c == nil {
		c = &cell{}
		r.cells[key] = c
	}
	return c
}

// read begins a visit; every read is followed by leave.
func (r *register) read(key string, token int64) (value int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cellLocked(key)
	if c.inside++; c.inside > 1 {
		c.overlaps++
	}
	if token < c.fence {
		c.refused++
		return 0, false
	}
	c.fence = token
	return c.value, true
}

func (r *register) write(key string, token int64, value int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cellLocked(key)
	if token < c.fence {
		c.refused++
		return false
	}
	if token < c.newest {
		c.older++
	}
	c.fence, c.newest = token, token
	c.value = value
	c.accepted++
	return true
}

func (r *register) leave(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cellLocked(key).inside--
}

// account sums up: lost are updates that were accepted and are not in the value.
func (r *register) account() (accepted, refused, overlaps, older, lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.cells {
		accepted += c.accepted
		refused += c.refused
		overlaps += c.overlaps
		older += c.older
		lost += c.accepted - c.value
	}
	return accepted, refused, overlaps, older, lost
}

// tokenOf returns what a hold shows to the register, which minds no 0 where nobody has a token.
func tokenOf(h *anteroom.Hold) int64 {
	token, _ := h.Token()
	return token
}
