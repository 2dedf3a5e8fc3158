package allpaths

import (
	"context"
	"fmt"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// moved names series that a path moves: a metric without its prefix, and some of the
// values of its labels, for example moved{"lost_total", "gone"}. All series that have
// these values are added up.
type moved []string

func (m moved) String() string { return m[0] + "{" + strings.Join(m[1:], ",") + "}" }

// value returns what the process counts under m.
func (p *process) value(m moved) (float64, error) {
	families, err := p.registry.Gather()
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, f := range families {
		if strings.TrimPrefix(f.GetName(), "anteroom_") != m[0] {
			continue
		}
		for _, s := range f.GetMetric() {
			if hasAll(s, m[1:]) {
				sum += s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum, nil
}

func hasAll(s *dto.Metric, values []string) bool {
	for _, v := range values {
		found := false
		for _, l := range s.GetLabel() {
			found = found || l.GetValue() == v
		}
		if !found {
			return false
		}
	}
	return true
}

// moveTime bounds how long a path may take until its series have moved: leases of a
// second or two, some periods of the watchdog, and a machine that is busy with other
// tests all the while.
const moveTime = 60 * time.Second

// above waits until m is above before. It looks twenty times a second, because metrics
// give no signal.
func (p *process) above(ctx context.Context, m moved, before float64) error {
	ctx, cancel := context.WithTimeout(ctx, moveTime)
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

// named returns the metric's name alone, and with each value of its labels but the class.
func named(name string, s *dto.Metric) []string {
	list := []string{strings.TrimPrefix(name, "anteroom_")}
	for _, l := range s.GetLabel() {
		if l.GetName() != "class" {
			list = append(list, list[0]+" "+l.GetValue())
		}
	}
	return list
}
