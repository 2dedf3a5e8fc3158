package partition

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/history"
)

// direction is what a cut between a client and the servers loses.
type direction string

const (
	bothWays direction = "both ways"
	requests direction = "requests"
	replies  direction = "replies"
)

// alone cuts a client off from every server: for so long, or, with 0, until others have its locks. Redis is well, so
// nothing excuses an overlap.
func alone(t *testing.T, s *site, off, on testredis.Host, lost direction, d time.Duration) *outcome {
	t.Helper()
	kept := lease
	if d > 0 {
		kept = 3 * lease // enough is left of it for a renewal on a busy machine
	}
	x := s.trial(t, kept)
	x.clients(off, on)
	n := x.present()
	by := x.holders(n, here)
	x.at = history.Now()
	client := []testredis.Host{off}
	if lost != replies {
		x.lose(client, x.servers)
	}
	if lost != requests {
		x.lose(x.servers, client)
	}
	if d == 0 {
		x.passed(n, here, by)
	} else {
		time.Sleep(d) // the fault itself
	}
	healed := history.Now()
	x.heal()
	x.held(here)
	o := x.finish(healed, 0)
	o.print(t, fmt.Sprintf("healed %v after the cut; ", x.since(healed)))
	if d > 0 && x.since(healed) < kept/4 && len(o.told) != 0 {
		t.Errorf("%d told", len(o.told))
	}
	if o.Overlaps != 0 {
		t.Errorf("%d overlaps, and Redis was well", o.Overlaps)
	}
	return o
}

// deaf cuts the subscription connections of a client's host, and nothing else, and waits for others.
func deaf(t *testing.T, s *site, off, on testredis.Host) *outcome {
	t.Helper()
	x := s.trial(t, lease)
	x.clients(off, on)
	had := x.subscriptions(off)
	for end := time.Now().Add(pace.Hang); len(had) < 3 && time.Now().Before(end); had = x.subscriptions(off) {
		time.Sleep(20 * time.Millisecond) // a process on a busy machine subscribes late
	}
	if len(had) < 3 {
		t.Fatalf("%d subscriptions of three processes", len(had))
	}
	x.at = history.Now()
	for port, n := range had {
		x.cutConnection(off, port, n.Host())
	}
	var again int64
	eventually(x.t, through, "every process has subscribed again", func() bool {
		fresh := 0
		for port := range x.subscriptions(off) {
			if had[port] == nil {
				fresh++
			}
		}
		again = history.Now()
		return fresh >= len(had)
	})
	time.Sleep(lease) // for what a subscription that came too late would have cost
	x.heal()
	o := x.finish(0, 0)
	o.print(t, fmt.Sprintf("subscribed again %v after the cut; ", x.since(again)))
	// The delivery probe is made once in W, and waits for C twice at most. A process that was late itself, on a busy
	// machine, takes its failure for no verdict and makes another.
	if d := x.since(again); !pace.Within(d, 2*(look+2*command)+busy) {
		t.Errorf("subscribed again %v after the cut", d)
	}
	if o.Overlaps != 0 || len(o.told) != 0 {
		t.Errorf("%d overlaps, %d told, and every lock could be renewed", o.Overlaps, len(o.told))
	}
	return o
}

// subscriptions returns the subscription connections from a host, by the client's port.
func (s *site) subscriptions(client testredis.Host) map[string]*testredis.Server {
	found := map[string]*testredis.Server{}
	for _, n := range s.nodes {
		list := s.admin[n].Do(context.Background(), "client", "list", "type", "pubsub").String()
		for field := range strings.FieldsSeq(list) {
			if port, ok := strings.CutPrefix(field, "addr="+client.Addr+":"); ok {
				found[port] = n
			}
		}
	}
	return found
}
