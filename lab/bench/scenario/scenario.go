package scenario

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// Scenario is one kind of work, done by several libraries.
type Scenario struct {
	Name  string // as in results.json: short, unique, without spaces
	Title string // as in tables and documents
	// Libraries take part, in the order of the table.
	Libraries []string
	// Kind selects the best configuration of each.
	Kind library.Kind
	// Processes is the number of processes; 0 means 1.
	Processes int
	Load      measure.Load
	// Warm and For are those of one round.
	Warm, For time.Duration
	// Placed gives the redis-server a processor of its own, and everything else the others.
	Placed bool
	// Awake keeps all processors from sleeping meanwhile.
	Awake bool
	// Rounds is the number of rounds; 0 leaves it to the program.
	Rounds int
	// Quick: also part of the quick run, which has times of its own, or these.
	Quick               bool
	QuickWarm, QuickFor time.Duration
	QuickRounds         int
	QuickLibraries      []string // empty: all
	// Limit bounds a round beyond its own times; 0: a minute.
	Limit time.Duration
	// Settings describes what differs from the libraries' own configuration.
	Settings string
	Targets  []Target
	// Measure does one round; nil means measure.Round, in this process.
	Measure func(ctx context.Context, r Round) (measure.Figures, error)
}

// Round is the argument of Scenario.Measure.
type Round struct {
	Scenario Scenario
	Library  library.Library
	Addr     string // of the redis-server, which is empty
	Number   int    // from 0; a warm-up of the machine has none
	// Prefix is the prefix of all keys of this round.
	Prefix    string
	Warm, For time.Duration
	// Note records what a reader of the results must know, such as the first error.
	Note func(text string)
}

// Target is a demand on a scenario's results.
type Target struct {
	// Of is the library concerned.
	Of     string
	Figure measure.Figure
	// Over are the libraries by whose best the figure is divided; empty means the figure itself.
	Over []string
	// Than is the scenario by whose figure of the same library the figure is divided; empty means none. It excludes
	// Over.
	Than string
	// AtLeast or AtMost is the bound; the other one is 0.
	AtLeast, AtMost float64
}
