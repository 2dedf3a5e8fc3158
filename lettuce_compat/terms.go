package lettucecompat

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// An RWMutex and a Semaphore are one thing to Redis: so many units, of which a client has some.
const (
	// AllUnits are the units of an RWMutex: a reader needs one of them, a writer all.
	AllUnits = 1 << 20
	// MostUnits bounds the capacity of a Semaphore: package queue adds two such numbers in 32 bits.
	MostUnits = 1 << 29

	unitsHeader = ":" // the field of the hash that is no client
)

// Terms are what all commands about one lock share. They are made once for a lock's configuration and do not
// change; they must not be copied.
type Terms struct {
	Call  time.Duration // how long what is granted or called lasts, see CallLease
	Lease time.Duration // to what a kept unit is raised
	Life  time.Duration // how long a place lives, see PlaceLife
	// Strings: a string at the key is a lock of another library, which announces its end to nobody. So others beside us
	// count as seen whenever a client waits in line.
	Strings    bool
	Fenced     bool          // a grant has a token
	RecordTime time.Duration // how long the fencing record lives after its last grant
	// Shared: it is an RWMutex or, with a Capacity, a Semaphore, of which all clients may have so many units together, as this one
	// sees it. Otherwise it is a Mutex.
	Shared   bool
	Capacity int64

	said atomic.Pointer[termsText] // for the client that has asked last
}

// termsText is Terms as arguments of the script, made once instead of for each command.
type termsText struct {
	client                   *Client
	multi                    bool
	call, text, record, kind string
}

// of returns the text for c.
func (t *Terms) of(c *Client) *termsText {
	multi := c.Multi()
	if said := t.said.Load(); said != nil && said.client == c && said.multi == multi {
		return said
	}
	how := "-"
	if multi {
		how += "m"
	}
	if t.Strings {
		how += "s"
	}
	kind, capacity := t.kind()
	said := &termsText{
		client: c, multi: multi, call: millis(t.Call), record: millis(t.RecordTime), kind: kind + " " + strconv.FormatInt(capacity, 10),
		text: strings.Join([]string{millis(t.Lease), millis(t.Life), how, c.word}, " "),
	}
	t.said.Store(said)
	return said
}

// kind returns what lua/units.lua calls the kind of the lock, and how many units there are.
func (t *Terms) kind() (name string, capacity int64) {
	switch {
	case !t.Shared:
		return "", 1
	case t.Capacity == 0:
		return "rw", AllUnits
	}
	return "sem", t.Capacity
}
