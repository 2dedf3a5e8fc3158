package conversation

import (
	"fmt"
	"strconv"
	"strings"
)

// This file is how states, commands and events print: for a failing test, or who debugs.

// nameOf returns the one of names that i counts.
func nameOf(names string, i uint8) string {
	if all := strings.Fields(names); int(i) < len(all) {
		return all[i]
	}
	return strconv.Itoa(int(i))
}

func (s State) String() string { return nameOf("Idle Unsure Waiting Fresh Holding Leaving", uint8(s)) }

func (k Kind) String() string {
	return nameOf("Has HasNot Waits Lost Silence Failed Called Retry Ended Exited Surplus Tick", uint8(k))
}

func (f Effect) String() string { return nameOf("None Granted Vanished Missing GivenUp", uint8(f)) }

// String returns the number, what the client has (p: a place), keeps and wants, the flags Seize, Again and Try by their
// letters, and the numbers that it names.
func (c Command) String() string {
	have := strconv.FormatInt(c.Have, 10)
	if c.InLine {
		have = "p"
	}
	s := fmt.Sprintf("%d: %s %d %d", c.N, have, c.Keep, c.Want)
	for flag, is := range map[string]bool{"s": c.Seize, "a": c.Again, "t": c.Try} {
		if is { // never two of them
			s += flag
		}
	}
	if c.Since > 0 {
		s += fmt.Sprintf(", since %d", c.Since)
	}
	if c.Place > 0 {
		s += fmt.Sprintf(", place %d", c.Place)
	}
	return s
}

// String returns what is not zero.
func (e Event) String() string {
	s := fmt.Sprintf("%v of %d", e.Kind, e.N)
	if e.Units > 0 {
		s += fmt.Sprintf(": %d units of record %d for %v", e.Units, e.Record, e.Lease)
	}
	if e.After > 0 {
		s += fmt.Sprintf(", after %v", e.After)
	}
	return s
}
