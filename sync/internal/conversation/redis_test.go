package conversation

import (
	"slices"
	"time"
)

// This file is Redis as the tests see it: what the scripts do of a command and of a renewal, for both layouts of the
// record. It is a plain value that can be compared, so the random and the exhaustive world play against the same.

const (
	clients = 5
	every   = 1 << 20 // units of an RWMutex
)

type record struct {
	n         uint64
	units     int64
	ends      Moment
	contended bool
}

type place struct {
	n          uint64
	had, wants int64
	alive      Moment
}

type redis struct {
	Terms
	document bool // a record keeps the number by which it came: the field <client>:<number>. Else it takes that of each command
	capacity [clients]int64
	records  [clients]record
	places   [clients]place
	line     [clients]int8 // clients + 1, the first one first
	notified bool          // all holders know that the first in line waits
	ticket   Moment        // until then a ticket has the unit
	seized   uint64        // the record that was taken from the ticket, until somebody owns it
	spent    bool          // it was given back, and not to the ticket
}

// publish is how a script publishes a call, or if contended is not 0, that another client waits for that record.
type publish func(client int, e Event, contended uint64)

func (r *redis) leave(client int) {
	r.places[client] = place{}
	if i := slices.Index(r.line[:], int8(client+1)); i >= 0 {
		copy(r.line[i:], r.line[i+1:])
		r.line[clients-1] = 0
	}
}

func (r *redis) expire(now Moment) {
	for i := range clients {
		if r.records[i].n > 0 && now >= r.records[i].ends {
			r.records[i] = record{}
		}
		if r.places[i].n > 0 && now > r.places[i].alive {
			r.leave(i)
		}
	}
	if now >= r.ticket {
		r.ticket = 0
	}
}

// suffices reports whether a client may have so many units in all.
func (r *redis) suffices(client int, want int64) bool {
	capacity := r.capacity[client]
	for i, q := range r.records {
		if i != client && q.units > 0 {
			capacity, want = min(capacity, r.capacity[i]), want+q.units
		}
	}
	return want <= capacity && r.ticket == 0 && !(r.document && r.records[client].units > 0) // a late one refuses its client as anybody's
}

func (r *redis) give(client int, p place, now Moment) {
	q := &r.records[client]
	if q.n = p.n; q.units < p.had {
		q.n = 1 // deleted: its next command finds that they are lost
	}
	q.units, q.ends = max(q.units, p.wants), max(q.ends, now.Add(r.Call))
	r.leave(client)
	if q.contended = r.line[0] > 0; !q.contended {
		r.notified = false
	}
}

// state is the script of a command. It also answers whether another client waits.
func (r *redis) state(client int, s Command, now Moment, send publish) (e Event, contended bool) {
	r.expire(now)
	q, waited, since := &r.records[client], r.places[client].n > 0, s.Since
	mine := q.units > 0 && (q.n >= since || !r.document && s.Have == 0)
	switch {
	case q.n >= s.N, r.places[client].n >= s.N, s.Seize && (r.places[client].n != s.Place || r.ticket == 0):
		return Event{Kind: Failed, N: s.N}, false
	case s.Have > 0 && (!mine || q.units < s.Have):
		return Event{Kind: Lost, N: s.N}, false
	case s.InLine && !mine && !waited:
		return Event{Kind: HasNot, N: s.N}, false
	}
	if s.Seize {
		*q, r.ticket, r.seized = record{n: s.N, units: 1, ends: r.ticket}, 0, s.N
		r.leave(client)
		return Event{Kind: Has, N: s.N, Record: s.N, Units: 1, Lease: q.ends.Sub(now)}, r.line[0] > 0
	}
	had := int64(0) // of what is the client's
	if mine {
		if s.Keep == 0 && q.n == r.seized { // with the mark of the ticket
			if r.spent = since != r.seized; !r.spent {
				r.ticket, r.seized = q.ends, 0
			}
		}
		had = min(q.units, s.Keep)
		if q.units = had; s.Have > 0 {
			q.ends = max(q.ends, now.Add(r.Lease))
		}
		if !r.document {
			q.n = s.N
		}
		if had == 0 {
			*q = record{}
		}
	}
	switch waits := s.Want > had || s.Again; {
	case waits:
		if !waited {
			r.line[slices.Index(r.line[:], 0)] = int8(client + 1)
		}
		r.places[client] = place{s.N, had, s.Want, now.Add(r.Life)}
	default:
		r.leave(client)
	}
	for r.line[0] > 0 && r.suffices(int(r.line[0]-1), r.places[r.line[0]-1].wants) {
		k := int(r.line[0] - 1)
		n := r.places[k].n
		r.give(k, r.places[k], now)
		if g := r.records[k]; k != client {
			send(k, Event{Kind: Called, N: n, Record: n, Units: g.units, Lease: r.Call}, 0)
			if g.contended {
				send(k, Event{}, n)
			}
		}
	}
	if first := int(r.line[0] - 1); first >= 0 {
		for i := range clients {
			if o := &r.records[i]; o.units > 0 && !o.contended && i != first {
				o.contended = true
				if i != client && !r.notified {
					send(i, Event{}, o.n)
				}
			}
		}
		r.notified = true
	}
	if s.Try {
		r.leave(client)
	}
	e = Event{Kind: Has, N: s.N, Record: q.n, Units: q.units, Lease: q.ends.Sub(now)}
	if !mine && q.units > 0 && q.n < s.N { // a late one
		e.Units, e.Lease = 0, 0
	}
	switch ahead := slices.Index(r.line[:], int8(client+1)); {
	case ahead >= 0:
		next := time.Hour
		for _, o := range r.records {
			if o.units > 0 {
				next = min(next, o.ends.Sub(now)+ms)
			}
		}
		e.Kind, e.After = Waits, min(100*ms*time.Duration(max(ahead, 1)), 300*ms)
		if ahead < 2 {
			e.After = min(e.After, next)
		}
	case e.Units == 0:
		e.Kind = HasNot
	}
	return e, q.contended
}

// renew is the script of a renewal: it names the grant. It reports whether the units are there, and whether another client waits.
func (r *redis) renew(client int, grant uint64, units int64, now Moment) (renewed, contended bool) {
	r.expire(now)
	q := &r.records[client]
	if q.n < grant || q.units < units || r.document && q.n != grant {
		return false, false
	}
	q.ends = max(q.ends, now.Add(r.Lease))
	return true, q.contended
}
