package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// Plan is how scenarios are run.
type Plan struct {
	Quick bool
	// Rounds is the number of rounds of scenarios without a number of their own; 0 means 5, and 3 if quick.
	Rounds int
	// Libraries, if not nil, excludes those whose name does not match.
	Libraries *regexp.Regexp
	// Peers measures the candidates for the peers' best configurations instead of the
	// scenarios' libraries.
	Peers bool
	// Old, if not empty, is a bench program built from another checkout, whose Anteroom is measured beside this one's.
	// Every round is then measured in a process of its own.
	Old string
	// Progress, if not nil, receives what is being measured.
	Progress io.Writer
}

// The times of a round of the quick run. The scenarios' own times are for the full one.
const (
	quickWarm   = 50 * time.Millisecond
	quickFor    = 150 * time.Millisecond
	quickRounds = 3
	fullRounds  = 5
)

// roundLimit bounds a round beyond its own times, so that nothing hangs the program: it leaves room for goroutines
// and a client that do not come back.
const roundLimit = time.Minute

// Outcome is the result of a scenario.
type Outcome struct {
	Scenario Scenario
	Results  []measure.Result
	// Notes are what a reader must know in addition, in order, without duplicates.
	Notes []string
	Took  time.Duration
}

// Run measures a scenario on a redis-server of its own.
func (p Plan) Run(ctx context.Context, s Scenario) (o Outcome, err error) {
	start := time.Now()
	s = p.shortened(s)
	o.Scenario = s
	libs, err := p.libraries(s)
	if err != nil {
		return o, err
	}
	if p.Old != "" {
		err = p.interleave(s, withOld(libs), &o, func(lib library.Library, n int) (measure.Figures, error) {
			p.progress(s, lib, n)
			return p.apart(ctx, s, lib, o.note)
		})
		o.Took = time.Since(start)
		return o, err
	}
	if s.Awake {
		loops, err := stayAwake()
		if err != nil {
			return o, err
		}
		defer loops.stop()
	}
	err = testredis.WithoutTest(s.Name, func(t *testredis.Program) error {
		return p.measure(ctx, s, libs, testredis.Start(t), &o)
	})
	o.Took = time.Since(start)
	return o, err
}

// measure does all rounds of a scenario on a server.
func (p Plan) measure(ctx context.Context, s Scenario, libs []library.Library, server *testredis.Server, o *Outcome) (err error) {
	if s.Placed {
		undo, failed := place(server.Pid())
		if failed != nil {
			o.note("Redis has no processor of its own: " + failed.Error())
		} else {
			defer func() { err = errors.Join(err, undo()) }()
		}
	}
	return p.interleave(s, libs, o, func(lib library.Library, n int) (measure.Figures, error) {
		return p.round(ctx, s, lib, server.Addr(), n, o.note)
	})
}

// interleave does the rounds of all libraries in turn (I1).
func (p Plan) interleave(s Scenario, libs []library.Library, o *Outcome, round func(lib library.Library, n int) (measure.Figures, error)) error {
	rounds := make([][]measure.Figures, len(libs))
	for n := range p.rounds(s) {
		for i := range libs {
			// Each round begins with another library.
			at := (i + n) % len(libs)
			f, err := round(libs[at], n)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", s.Name, libs[at].Name, err)
			}
			rounds[at] = append(rounds[at], f)
		}
	}
	for i, lib := range libs {
		o.Results = append(o.Results, measure.Summarize(s.setup(lib), rounds[i]))
	}
	return nil
}

// libraries returns the libraries that take part.
func (p Plan) libraries(s Scenario) (libs []library.Library, err error) {
	if p.Peers {
		libs = library.Candidates()
	} else {
		for _, name := range s.Libraries {
			lib, err := library.For(name, s.Kind)
			if err != nil {
				return nil, err
			}
			libs = append(libs, lib)
		}
	}
	return slices.DeleteFunc(libs, func(l library.Library) bool {
		return p.Libraries != nil && !p.Libraries.MatchString(l.Name)
	}), nil
}

func (s Scenario) setup(lib library.Library) measure.Setup {
	settings := lib.Settings
	if s.Settings != "" {
		settings = s.Settings + "; otherwise " + settings
	}
	return measure.Setup{
		Scenario: s.Name, Library: lib.Name, Version: lib.Version(), Settings: settings, Fair: lib.Fair, Local: lib.Local,
		Goroutines: s.Load.Goroutines, Processes: max(s.Processes, 1), Keys: s.Load.Keys, Hold: s.Load.Hold,
	}
}

func (p Plan) rounds(s Scenario) int {
	switch {
	case p.Rounds > 0:
		return p.Rounds
	case p.Quick:
		return cmp.Or(s.QuickRounds, quickRounds)
	case s.Rounds > 0:
		return s.Rounds
	}
	return fullRounds
}

// Estimate returns how long the rounds of a scenario take, without the time between them.
func (p Plan) Estimate(s Scenario) time.Duration {
	s = p.shortened(s)
	warm, span := p.times(s)
	return time.Duration(p.rounds(s)*len(s.Libraries)) * (warm + span)
}

// shortened returns the scenario with the libraries that take part in this run.
func (p Plan) shortened(s Scenario) Scenario {
	if p.Quick && len(s.QuickLibraries) > 0 {
		s.Libraries = s.QuickLibraries
	}
	return s
}

func (p Plan) times(s Scenario) (warm, span time.Duration) {
	if p.Quick {
		return cmp.Or(s.QuickWarm, quickWarm), cmp.Or(s.QuickFor, quickFor)
	}
	return s.Warm, s.For
}

// round measures one library once, on an empty server and an empty heap.
func (p Plan) round(ctx context.Context, s Scenario, lib library.Library, addr string, n int, note func(string)) (measure.Figures, error) {
	r := Round{
		Scenario: s, Library: lib, Addr: addr, Number: n, Prefix: fmt.Sprintf("bench:%d", n),
		Note: func(text string) { note(lib.Name + ": " + text) },
	}
	r.Warm, r.For = p.times(s)
	p.progress(s, lib, n)
	ctx, cancel := context.WithTimeout(ctx, r.Warm+r.For+cmp.Or(s.Limit, roundLimit))
	defer cancel()
	if err := flush(ctx, addr); err != nil {
		return nil, err
	}
	runtime.GC()
	if s.Measure != nil {
		return s.Measure(ctx, r)
	}
	load := s.Load
	load.Prefix = r.Prefix
	f, failure, err := measure.Round(ctx, addr, lib, load, r.Warm, r.For)
	if failure != "" {
		r.Note(failure)
	}
	return f, err
}

func (p Plan) progress(s Scenario, lib library.Library, n int) {
	if p.Progress != nil {
		fmt.Fprintf(p.Progress, "%s: %s, round %d\x1b[K\r", s.Name, lib.Name, n+1)
	}
}

// flush empties the server. Scripts stay, as on a server in use.
func flush(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	return rdb.FlushAll(ctx).Err()
}

func (o *Outcome) note(text string) {
	if !slices.Contains(o.Notes, text) {
		o.Notes = append(o.Notes, text)
	}
}
