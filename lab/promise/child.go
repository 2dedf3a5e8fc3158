package promise

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/faultnet"
)

// holderRole is the child role of a holder's process.
const holderRole = "promise-holder"

// order says what a holder's process must hold.
type order struct {
	Library string
	Addr    string
	Names   []string
}

// Main must be called first by every program that calls Paused, with the libraries that it measures. In a holder's
// process it does not return.
func Main(libraries ...Library) {
	child.Run(map[string]child.Role{holderRole: func(_ context.Context, parent *child.Link, plan json.RawMessage) error {
		var o order
		if err := json.Unmarshal(plan, &o); err != nil {
			return err
		}
		i := slices.IndexFunc(libraries, func(l Library) bool { return l.Name == o.Library })
		if i < 0 {
			return fmt.Errorf("no library %q", o.Library)
		}
		return serve(libraries[i], o, parent)
	}})
}

// The words exchanged between a holder's process and its parent.
const (
	holding  = "holding"
	toWatch  = "watch"
	watching = "watching"
	toReport = "report"
)

// serve is a holder's process: it acquires, watches when ordered to, and reports what it saw. It ends without a
// release, since its parent kills it.
func serve(lib Library, o order, parent *child.Link) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*lib.Lease+2*patience)
	defer cancel()
	c, err := lib.Connect(o.Addr, faultnet.New(nil).Dial)
	if err != nil {
		return err
	}
	holds, err := acquire(ctx, lib, c, o.Names)
	if err != nil {
		return err
	}
	if err := parent.Send(holding); err != nil {
		return err
	}
	var word string
	if err := parent.Receive(&word); err != nil {
		return err
	}
	w := watch(holds, len(lib.Questions), 0)
	if err := parent.Send(watching); err != nil {
		return err
	}
	if err := parent.Receive(&word); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.told(wait)
	return parent.Send(w.finish())
}

// spawn starts this program again as a holder, and waits until it holds. It is killed when ctx ends.
func spawn(ctx context.Context, o order) (*child.Process, error) {
	p, err := child.Start(ctx, holderRole, o, child.Forever)
	if err != nil {
		return nil, err
	}
	if err := expect(p, holding); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

func expect(p *child.Process, want string) error {
	var got string
	if err := p.Receive(&got, child.Forever); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("the holder's process says %q, want %q", got, want)
	}
	return nil
}
