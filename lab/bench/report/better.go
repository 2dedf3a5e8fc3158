package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/lab/bench/growth"
	"github.com/anteroom/anteroom/lab/bench/handover"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

// compared are the figures in which a peer may be better, and whether more is better.
var compared = []struct {
	name measure.Figure
	more bool
	text string
}{
	{measure.OpsPerS, true, "acquisitions/s"},
	{measure.P50US, false, "wait, p50"},
	{measure.P99US, false, "wait, p99"},
	{measure.MaxUS, false, "longest wait"},
	{measure.CommandsPerOp, false, "commands for each acquisition"},
	{measure.BytesPerOp, false, "bytes to and from Redis for each acquisition"},
	{measure.AllocsPerOp, false, "allocations for each acquisition"},
	{measure.ClientCPUUSPerOp, false, "client CPU for each acquisition, µs"},
	{measure.RedisCPUUSPerOp, false, "Redis CPU for each acquisition, µs"},
	{measure.Connections, false, "connections"},
	{handover.P50, false, "hand-over, p50"},
	{handover.P99, false, "hand-over, p99"},
	{growth.HeapPerItem, false, "client memory for each held lock, beside stacks"},
	{growth.CPU, false, "client CPU while the locks are held"},
	{growth.RedisCPU, false, "Redis CPU while the locks are held"},
	{growth.FreedPerS, true, "releases/s of all held locks"},
}

// noticeable is by how much a peer's figure must be better to be listed: less is noise.
const noticeable = 1.05

// better lists every figure in which a peer is better than Anteroom, fair or not, whichever of the two is better: a
// line for each scenario.
func better(s set, _ []string) string {
	if len(s) == 0 {
		return ""
	}
	t := newList("scenario", "figure: Anteroom, the peer")
	n := 0
	for _, sc := range scenario.Table() {
		if found := s.of(sc.Name).beaten(); len(found) > 0 {
			t.row(sc.Title, strings.Join(found, "; "))
			n++
		}
	}
	if n == 0 {
		return "Nothing was found."
	}
	return t.String()
}

// beaten formats the figures of one scenario in which a peer is better.
func (s set) beaten() (found []string) {
	for _, c := range compared {
		ours, _, ok := s.best(c.name, c.more, []string{library.Anteroom, library.AnteroomFair})
		theirs, peer, there := s.best(c.name, c.more, library.Peers())
		if !ok || !there {
			continue
		}
		if c.more && theirs > ours*noticeable || !c.more && theirs*noticeable < ours {
			found = append(found, fmt.Sprintf("%s: %s, %s %s", c.text, text(c.name, ours), text(c.name, theirs), peer))
		}
	}
	return found
}

// best returns the best figure of some libraries, and its library.
func (s set) best(name measure.Figure, more bool, libraries []string) (best float64, whose string, found bool) {
	for _, r := range s {
		v, ok := r.Figures[name]
		if !ok || !slices.Contains(libraries, r.Library) {
			continue
		}
		if !found || more && v > best || !more && v < best {
			best, whose, found = v, r.Library, true
		}
	}
	return best, whose, found
}
