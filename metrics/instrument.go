package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/metrics/debug"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// Instrument lets the Managers that are made with cfg report to a new Collector, registered with reg, and to a new
// debug page, which it returns:
//
//	page, err := metrics.Instrument(&cfg, prometheus.DefaultRegisterer)
//	http.Handle("/debug/anteroom/", page)
//
// It is called before NewManager or Open. It sets cfg.Observer, which must be nil, adds to OnEvent and Attach what the
// page and the Collector need, and switches RecordCallSites on. Collector and page have their default configurations;
// with others, or for Managers that come and go, wire them with New, debug.New and Attach. On an error cfg is as it
// was, and nothing is registered.
//
// With a nil reg there is no Collector and cfg.Observer stays as it is, for example that of OpenTelemetry: the page is
// all.
//
// The page shows keys: serve it where only operators can reach it.
func Instrument(cfg *anteroom.Config, reg prometheus.Registerer) (*debug.Page, error) {
	if reg != nil && cfg.Observer != nil {
		return nil, errors.New("anteroom/metrics: Config.Observer is set already")
	}
	page, err := debug.New(debug.Config{})
	if err != nil {
		return nil, err
	}
	var c *Collector
	if reg != nil {
		if c, err = New(Config{}); err != nil {
			return nil, err
		}
		if err := reg.Register(c); err != nil {
			return nil, err
		}
		cfg.Observer = c.Observer()
	}
	onEvent, attach := cfg.OnEvent, cfg.Attach
	cfg.RecordCallSites = true
	cfg.OnEvent = func(e observe.Event) {
		page.OnEvent(e)
		if onEvent != nil {
			onEvent(e)
		}
	}
	cfg.Attach = func(m *anteroom.Manager) {
		if c != nil {
			c.Attach(m)
		}
		page.Attach(m)
		if attach != nil {
			attach(m)
		}
	}
	return page, nil
}
