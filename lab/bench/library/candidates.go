package library

import (
	"time"
)

// Candidates are the configurations of the peers that were compared to find the best ones
// (`bench -peers`). Their names tell them apart.
func Candidates() []Library {
	var all []Library
	add := func(l Library, name string) {
		l.Name += " " + name
		all = append(all, l)
	}
	add(redsyncWith(0), "default")
	for _, delay := range []time.Duration{20 * time.Millisecond, 5 * time.Millisecond, time.Millisecond} {
		add(redsyncWith(delay), delay.String())
	}
	for _, backoff := range []time.Duration{100 * time.Millisecond, 20 * time.Millisecond, 5 * time.Millisecond, time.Millisecond} {
		add(redislockWith(backoff), backoff.String())
	}
	add(rueidislockWith(true, 2*time.Second), "noloop")
	add(rueidislockWith(false, 2*time.Second), "loop")
	add(rueidislockWith(true, 20*time.Millisecond), "noloop 20ms")
	add(rueidislockWith(false, 20*time.Millisecond), "loop 20ms")
	return all
}
