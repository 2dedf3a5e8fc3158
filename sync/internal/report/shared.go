package report

import (
	"context"
	"fmt"
	"strings"

	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// This file reports what only locks in units have.

// Capacity reports that those who hold the Semaphore count with so many units in all.
func (p *Reports) Capacity(k *lock.SharedKey, least int64) {
	own := k.Settings().Capacity
	text := fmt.Sprintf("the capacity is %d here, and another holder counts with %d: the lesser one counts", own, least)
	if least == own {
		text = fmt.Sprintf("the capacity that counts is %d again, as here", own)
	}
	p.event(context.Background(), observe.Event{Kind: observe.EventCapacity, Key: k.Name(), Class: k.Settings().Class, Text: text})
}

// describeShared is describeHolder for units.
func (p *Reports) describeShared(ev *observe.Event, k *lock.SharedKey) {
	is := k.State()
	switch {
	case is.Writes != nil:
	case is.Demand.Lost:
		ev.Text = "callers of this process have lost it and not unlocked"
	case is.Readers > 0:
		ev.Text = "read by " + Plural(int(is.Readers), "caller") + " of this process" + sites(is.Held)
	case is.Used > 0:
		ev.Text = Plural(int(is.Used), "unit") + " of it held by callers of this process" + sites(is.Held)
	default:
		ev.Text = "held by other processes, or by other Managers of this one"
	}
	if is.Used > 0 {
		ev.Holder = p.cfg.ClientID
	}
	a := k.Answer()
	switch {
	case a == nil:
	case a.Err != nil:
		ev.Text, ev.Err = "acquire is failing", a.Err
	case is.InLine:
		ev.Text += fmt.Sprintf("; %d in line before this one", a.Ahead)
	}
}

// sites names where some of those who are known by name came in, if that was recorded.
func sites(g *lock.SharedHeld) string {
	var list []string
	for _, o := range g.Owners() {
		if o.CallSite != "" && len(list) < shownLinks {
			list = append(list, o.CallSite)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ", taken at " + strings.Join(list, ", ")
}
