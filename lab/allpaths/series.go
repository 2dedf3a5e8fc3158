package allpaths

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// moved names series that a path moves: a metric without its prefix, and some of the values of its labels, for
// example moved{"lost_total", "gone"}. All series that have these values are added up.
type moved []string

func (m moved) String() string { return m[0] + "{" + strings.Join(m[1:], ",") + "}" }

// sample is the present value of one series.
type sample struct {
	name   string // of the metric, without its prefix
	class  string // "" if it has none
	values []string
	gauge  bool
	value  float64 // for a histogram the count
}

// samples returns all series of the process.
func (p *process) samples() ([]sample, error) {
	families, err := p.registry.Gather()
	if err != nil {
		return nil, err
	}
	var list []sample
	for _, f := range families {
		for _, m := range f.GetMetric() {
			s := sample{name: strings.TrimPrefix(f.GetName(), "anteroom_"), gauge: f.GetType().String() == "GAUGE"}
			for _, l := range m.GetLabel() {
				if l.GetName() == "class" {
					s.class = l.GetValue()
				} else {
					s.values = append(s.values, l.GetValue())
				}
			}
			s.value = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			list = append(list, s)
		}
	}
	return list, nil
}

// value returns what the process has counted for m.
func (p *process) value(m moved) (float64, error) {
	list, err := p.samples()
	sum := 0.0
	for _, s := range list {
		missing := func(v string) bool { return v != s.class && !slices.Contains(s.values, v) }
		if s.name == m[0] && !slices.ContainsFunc(m[1:], missing) {
			sum += s.value
		}
	}
	return sum, err
}

// moveTime bounds how long one try of a path may wait for its series to move: leases of a second or two, some periods
// of the watchdog, and a machine that is busy with other tests.
const moveTime = 20 * time.Second

// above waits until m is above before.
func (p *process) above(ctx context.Context, m moved, before float64) error {
	return p.within(ctx, m, before, moveTime)
}

// within is above with its own bound. It polls twenty times a second, because metrics give no signal.
func (p *process) within(ctx context.Context, m moved, before float64, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := p.value(m)
		if err != nil || now > before {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%v is still %v", m, now)
		}
	}
}
