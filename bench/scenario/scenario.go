package scenario

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/bench/library"
	"github.com/anteroom/anteroom/bench/measure"
)

// Scenario is one kind of work, done by several libraries.
type Scenario struct {
	Name  string // as in results.json: short, unique, without spaces
	Title string // as in tables and documents
	// Libraries take part, in the order of the table.
	Libraries []string
	// Kind says which configuration of each is the best one.
	Kind library.Kind
	// Processes lock; 0 is 1.
	Processes int
	Load      measure.Load
	// Warm and For are those of one round.
	Warm, For time.Duration
	// Placed gives the redis-server a processor of its own, and everything else the others.
	Placed bool
	// Awake keeps all processors from sleeping meanwhile.
	Awake bool
	// Rounds is how many there are; 0 leaves it to the program.
	Rounds int
	// Quick: also part of the quick run, which has its own times, or these.
	Quick               bool
	QuickWarm, QuickFor time.Duration
	QuickRounds         int
	QuickLibraries      []string // empty: all
	// Limit bounds a round beyond its own times; 0: a minute.
	Limit time.Duration
	// Settings says what differs from the libraries' own configuration.
	Settings string
	Targets  []Target
	// Measure does one round; nil: measure.Round, in this process.
	Measure func(ctx context.Context, r Round) (measure.Figures, error)
}

// Round is what Scenario.Measure is given.
type Round struct {
	Scenario Scenario
	Library  library.Library
	Addr     string // of the redis-server, which is empty
	Number   int    // from 0; a warm-up of the machine has none
	// Prefix is what the names of all keys of this round begin with.
	Prefix    string
	Warm, For time.Duration
	// Note says something that a reader of the results has to know, such as the first error.
	Note func(text string)
}

// Target demands something of a scenario's results.
type Target struct {
	// Of is the library that it is demanded of.
	Of     string
	Figure measure.Figure
	// Over are the libraries whose best the figure is divided by; empty: the figure itself.
	Over []string
	// AtLeast or AtMost is the bound; the other one is 0.
	AtLeast, AtMost float64
}
