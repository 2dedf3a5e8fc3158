package facts

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// Other is the class of all locks whose own class appeared after the cap was reached. A lock configured with this name
// shares its series.
const Other = "other"

// Classes finds what belongs to the class of a name, and creates it when the name first appears. Its methods are safe
// for concurrent use.
type Classes[T comparable] struct {
	create func(label string) T
	max    int
	table  atomic.Pointer[table[T]]
	mu     sync.Mutex // held to replace table
}

// table is the set of known classes at one moment. It is never changed, only replaced as a whole: a read takes one
// atomic load and one lookup, with no lock and no allocation (a sync.Map would allocate for each string looked up).
type table[T comparable] struct {
	byName  map[string]T // by the name that the Manager reports
	byLabel map[string]T // each class once
	list    []T          // in order of appearance
	full    bool         // a class has appeared after the cap was reached
	other   T            // of those, if full
}

// Init makes c ready, with no class known: at most limit and Other. create is called under c's lock.
func (c *Classes[T]) Init(limit int, create func(label string) T) {
	c.max, c.create = limit, create
	c.table.Store(&table[T]{byName: map[string]T{}, byLabel: map[string]T{}})
}

// All returns the known classes, each once. It must not be changed.
func (c *Classes[T]) All() []T { return c.table.Load().list }

// Get returns the class for name. over reports that the name appeared after the cap was reached, so that the class is
// Other.
func (c *Classes[T]) Get(name string) (cl T, over bool) {
	t := c.table.Load()
	if cl, ok := t.byName[name]; ok {
		return cl, false
	}
	if t.full {
		return t.other, true // for good
	}
	return c.getSlow(name)
}

// getSlow creates a class, outlined so that Get stays small. It reads again under mu, because another goroutine may have
// created the class, or reached the cap, since Get read. It copies the maps each time: at most max times.
func (c *Classes[T]) getSlow(name string) (cl T, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.table.Load()
	if cl, ok := t.byName[name]; ok {
		return cl, false
	}
	if t.full {
		return t.other, true
	}
	next := *t
	over = len(t.byName) >= c.max
	label := Other
	if !over {
		// A name may hold any bytes, a label value only UTF-8. Two names that differ only in invalid bytes become one
		// class.
		label = strings.ToValidUTF8(name, "\uFFFD")
	}
	cl, known := t.byLabel[label]
	if !known {
		cl = c.create(label)
		next.list = append(t.list[:len(t.list):len(t.list)], cl)
		next.byLabel = maps.Clone(t.byLabel)
		next.byLabel[strings.Clone(label)] = cl
	}
	if over {
		next.full, next.other = true, cl
	} else {
		next.byName = maps.Clone(t.byName)
		next.byName[strings.Clone(name)] = cl
	}
	c.table.Store(&next)
	return cl, over
}
