package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
)

// Round measures one library once in this process, with the redis-server at addr. The figures of a Local library
// include those of the server: zero.
//
// It is an error if nothing could be measured. A library that fails or hangs shows in the figures.
func Round(ctx context.Context, addr string, lib library.Library, load Load, warm, span time.Duration) (f Figures, failure string, err error) {
	probe, err := NewProbe(addr)
	if err != nil {
		return nil, "", err
	}
	defer probe.Close()
	c, err := lib.Open(addr)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", lib.Name, err)
	}
	var begin, end Reading
	var beginErr, endErr error
	tally := load.Muster(ctx, c).Run(Window{
		Warm: warm, For: span,
		Begin: func() { begin, beginErr = probe.Read() },
		End:   func() { end, endErr = probe.Read() },
	})
	if err := errors.Join(beginErr, endErr); err != nil {
		return nil, "", err
	}
	if err := closeClient(c); err != nil && tally.Failure == "" {
		tally.Failure = err.Error()
	}
	return tally.Figures().Add(end.PerOp(begin, tally.Ops, lib.Sends)), tally.Failure, nil
}

var errNotClosed = errors.New("Close did not return")

// closeClient bounds the closing of a client, since a client with stuck goroutines may hang.
func closeClient(c library.Client) error {
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	timer := time.NewTimer(comeBack)
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		return errNotClosed
	}
}
