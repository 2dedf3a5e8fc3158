package debug

import (
	"fmt"
	"slices"
	"sync"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Limits and defaults of Config.
const (
	defaultEvents  = 200
	maxEvents      = 10_000
	defaultRefresh = 2 * time.Second
	minRefresh     = 500 * time.Millisecond
	maxRefresh     = time.Hour
)

// Config configures a Page. The zero value is ready to use.
type Config struct {
	// Events is how many recent events are kept, 1 to 10,000. Defaults to 200.
	Events int

	// Refresh is how often an open page asks again, 500 ms to 1 hour. It asks less often
	// where an answer takes long, and not at all while it is paused or out of sight.
	// Defaults to 2 s.
	Refresh time.Duration

	// Hosts are the names, without a port, under which the page may be asked for. A request
	// for another name gets a 403, because a foreign page in the operator's browser may have
	// let its own name point here. Any address, localhost and names below it are always
	// allowed. "*" allows every name: for a program that stands behind a proxy that
	// checks who asks. Defaults to none.
	Hosts []string

	// HideKeys shows the short hash of a key, as log records carry it, in place of the key,
	// takes it out of messages, and makes the filter by key one by hash. Defaults to false.
	HideKeys bool
}

func (c Config) normal() (Config, error) {
	if c.Events == 0 {
		c.Events = defaultEvents
	}
	if c.Refresh == 0 {
		c.Refresh = defaultRefresh
	}
	switch {
	case c.Events < 1 || c.Events > maxEvents:
		return c, fmt.Errorf("%w: debug.Config.Events is %d; it must be from 1 to %d", anteroom.ErrConfig, c.Events, maxEvents)
	case c.Refresh < minRefresh || c.Refresh > maxRefresh:
		return c, fmt.Errorf("%w: debug.Config.Refresh is %v; it must be from %v to %v", anteroom.ErrConfig, c.Refresh, minRefresh, maxRefresh)
	}
	hosts, err := normalHosts(c.Hosts)
	c.Hosts = hosts
	return c, err
}

// Source is what a Page looks at. *anteroom.Manager has it. Survey is called by the
// goroutine of the request while no lock of the Page is held.
type Source interface {
	Survey(anteroom.SurveyOptions) anteroom.Survey
}

// Page is an http.Handler that shows the attached Managers. Make it with New. All methods
// are safe for concurrent use; it must not be copied.
type Page struct {
	cfg    Config
	events ring
	pace   pace

	mu sync.Mutex
	// sources is only ever appended to, or replaced as a whole: a request reads the part
	// that it saw under mu without holding it.
	sources []Source
}

// New returns a Page that is mounted nowhere and attached to nothing, or nil and an error
// that wraps anteroom.ErrConfig and names the field and its bound.
func New(cfg Config) (*Page, error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, err
	}
	return &Page{cfg: cfg, events: ring{max: cfg.Events}, pace: pace{share: costShare, turn: make(chan struct{}, 1)}}, nil
}

// Attach makes m's locks part of the page. Attaching twice changes nothing. The Page keeps
// m until Detach: a program that makes and closes Managers detaches them. m must be
// comparable, as pointers are, so that it can be found again; a nil m panics.
func (p *Page) Attach(m Source) {
	if m == nil {
		panic("anteroom/metrics/debug: Attach(nil)")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.sources, m) {
		p.sources = append(p.sources, m)
	}
}

// Detach takes m out again. Its events stay. Detaching what is not attached changes nothing.
func (p *Page) Detach(m Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.sources, m); i >= 0 {
		p.sources = slices.Concat(p.sources[:i], p.sources[i+1:])
	}
}

// OnEvent keeps e among the recent events. It is what Config.OnEvent of a Manager wants; it
// returns at once.
func (p *Page) OnEvent(e anteroom.Event) { p.events.add(e, p.cfg.HideKeys) }

func (p *Page) attached() []Source {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sources
}
