package lettucecompat

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Terms are what all statements about one lock share. They are made once for a lock's configuration and do not
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
	// Capacity is how many units of a Semaphore all clients may have together, as this one sees it. 0: it is an RWMutex.
	// A Mutex has none.
	Capacity int64

	said atomic.Pointer[termsText] // for the client that has asked last
}

// termsText is Terms as arguments of the script, made once instead of for each statement.
type termsText struct {
	client                   *Client
	multi                    bool
	call, text, record, kind any // strings, as arguments of a command
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
	if t.Capacity == 0 {
		return "rw", AllUnits
	}
	return "sem", t.Capacity
}
