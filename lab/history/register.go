package history

import (
	"slices"
	"sync"
)

// Access is one call of a register, in the register's own order.
type Access struct {
	At       int64
	Key      int
	Proc     uint32
	Hold     uint64
	Token    int64
	Fenced   bool
	Write    bool
	Base     int64 // Write: the version that was read
	Version  int64 // the version after the call
	Accepted bool
}

// Register is the resource that the locks protect: per key a version, which its users change by reading it and writing
// a new one in its place. It excludes nobody and is perfect otherwise: it is the memory of one process.
//
// A fenced key refuses tokens older than the newest one it has seen, at reads as well as at writes: what was read
// cannot be overwritten any more by an earlier reader.
//
// ServeRegister serves it to other processes. All methods are safe for concurrent use.
type Register struct {
	// Admits is the rule of a fenced key; tests replace it with a broken one.
	Admits func(newest, token int64) bool
	fenced []bool

	mu       sync.Mutex
	cells    []cell   // guarded by mu
	accesses []Access // guarded by mu
}

// cell is one key of a register.
type cell struct {
	version, newest int64
}

// NewRegister returns a register with one cell for each lock.
func NewRegister(locks []Lock) *Register {
	r := &Register{Admits: Admits, cells: make([]cell, len(locks))}
	for _, l := range locks {
		r.fenced = append(r.fenced, l.Fenced)
	}
	return r
}

// Admits is the check that docs/guarantees.md demands of a resource: a token no older than the newest one seen; a
// missing token is never enough.
func Admits(newest, token int64) bool { return token > 0 && token >= newest }

// ReadArgs and ReadReply are the call and the result of Read.
type ReadArgs struct {
	Key   int
	Proc  uint32
	Hold  uint64
	Token int64
}

// ReadReply is the result of Read.
type ReadReply struct {
	Accepted bool
	Version  int64
}

// Read returns the contents of a key.
func (r *Register) Read(a ReadArgs, reply *ReadReply) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.cells[a.Key]
	ok := r.presentLocked(a.Key, a.Token)
	if ok {
		*reply = ReadReply{Accepted: true, Version: c.version}
	}
	r.accesses = append(r.accesses, Access{
		At: Now(), Key: a.Key, Proc: a.Proc, Hold: a.Hold, Token: a.Token, Fenced: r.fenced[a.Key],
		Version: c.version, Accepted: ok,
	})
	return nil
}

// presentLocked presents a token to a fenced key. An unfenced one accepts everything.
func (r *Register) presentLocked(key int, token int64) bool {
	if !r.fenced[key] {
		return true
	}
	c := &r.cells[key]
	if !r.Admits(c.newest, token) {
		return false
	}
	c.newest = max(c.newest, token)
	return true
}

// WriteArgs is the call of Write, on what was read.
type WriteArgs struct {
	Key   int
	Proc  uint32
	Hold  uint64
	Token int64
	Base  int64
}

// Write replaces the contents of a key, and reports whether that was accepted.
func (r *Register) Write(a WriteArgs, accepted *bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.cells[a.Key]
	*accepted = r.presentLocked(a.Key, a.Token)
	if *accepted {
		c.version++
	}
	r.accesses = append(r.accesses, Access{
		At: Now(), Key: a.Key, Proc: a.Proc, Hold: a.Hold, Token: a.Token, Fenced: r.fenced[a.Key],
		Write: true, Base: a.Base, Version: c.version, Accepted: *accepted,
	})
	return nil
}

// Accesses returns all calls so far, in order.
func (r *Register) Accesses() []Access {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.accesses)
}
