package crew

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// RoleName is the child role of a crew's process.
const RoleName = "crew"

// The files that the processes share.
const (
	logName   = "turns"
	guardName = "guard"
)

// order is the plan of one process.
type order struct {
	Plan  Plan
	Dir   string
	Proc  int
	First int // the first number of its goroutines
}

// Role is one process of a crew.
func Role(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var o order
	if err := json.Unmarshal(raw, &o); err != nil {
		return err
	}
	log, err := OpenLog(filepath.Join(o.Dir, logName))
	if err != nil {
		return err
	}
	// Neither file is unmapped: a goroutine that is stuck in a library may come back, and the process ends soon.
	guards, _, err := measure.MapGuards(filepath.Join(o.Dir, guardName), 1)
	if err != nil {
		return err
	}
	lib, err := library.For(o.Plan.Library, o.Plan.Kind)
	if err != nil {
		return err
	}
	c, err := lib.Open(o.Plan.Addr)
	if err != nil {
		return err
	}
	team := measure.Load{
		Goroutines: o.Plan.Goroutines[o.Proc], Keys: 1, Hold: o.Plan.Hold, Prefix: o.Plan.Prefix,
		Guards: guards, First: uint32(o.First),
	}.Muster(ctx, logged{c, log, o.Proc})
	if err := l.Send("ready"); err != nil {
		return err
	}
	var word string
	if err := l.Receive(&word); err != nil {
		return err
	}
	tally := team.Run(measure.Window{Warm: o.Plan.Warm, For: o.Plan.For})
	if err := l.Send(tally); err != nil {
		return err
	}
	// The connections stay until the parent has counted them.
	<-ctx.Done()
	if tally.Stuck > 0 {
		return nil // Close would wait for stuck goroutines
	}
	return c.Close()
}
