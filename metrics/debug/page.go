package debug

import (
	"fmt"
	"slices"
	"sync"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
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
	// Events is the number of recent events to keep, 1 to 10,000. Defaults to 200.
	Events int

	// Refresh is how often an open page refreshes, 500 ms to 1 hour. It refreshes less often if an answer takes long,
	// and not at all while it is paused or hidden. Defaults to 2 s.
	Refresh time.Duration

	// Hosts are the names, without a port, under which the page may be requested. A request for another name gets a
	// 403, because a foreign page in the operator's browser may have pointed its own name here. Any address,
	// localhost and names below it are always allowed. "*" allows every name: use it behind a proxy that
	// authenticates. Defaults to none.
	Hosts []string

	// HideKeys shows the short hash of a key, as in log records, in place of the key, removes keys from messages, and
	// filters by hash instead of by key. Defaults to false.
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

// Source is what a Page shows; *anteroom.Manager implements it. Survey is called on the request's goroutine while no
// lock of the Page is held.
type Source interface {
	Survey(observe.SurveyOptions) observe.Survey
}

// Page is an http.Handler that shows the attached Managers. Create it with New. All methods are safe for concurrent
// use; it must not be copied.
type Page struct {
	cfg    Config
	events recent
	losses recent // beside events, whose number is bounded: an outage raises many of other kinds
	pace   pace

	mu sync.Mutex
	// sources is only appended to or replaced as a whole, so a request reads the slice it saw under mu without
	// holding mu.
	sources []Source
}

// New returns a Page without Managers, or nil and an error that wraps anteroom.ErrConfig and names the field and its
// bound.
func New(cfg Config) (*Page, error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, err
	}
	return &Page{cfg: cfg, events: recent{max: cfg.Events}, losses: recent{max: cfg.Events}, pace: pace{share: costShare, turn: make(chan struct{}, 1)}}, nil
}

// Attach adds m's locks to the page. Attaching twice has no further effect. The Page keeps m until Detach: a program
// that creates and closes Managers must detach them. m must be comparable, as pointers are, so that it can be found
// again. A nil m panics.
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

// Detach removes m. Its events stay. Detaching a Source that is not attached has no effect.
func (p *Page) Detach(m Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.sources, m); i >= 0 {
		p.sources = slices.Concat(p.sources[:i], p.sources[i+1:])
	}
}

// OnEvent adds e to the recent events. Set it as a Manager's Config.OnEvent, or call it from yours. It does not
// block.
func (p *Page) OnEvent(e observe.Event) {
	p.events.add(e, p.cfg.HideKeys)
	if e.Kind == observe.EventLost {
		p.losses.add(e, p.cfg.HideKeys)
	}
}

func (p *Page) attached() []Source {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sources
}
