package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// options are the flags of the command.
type options struct {
	length    time.Duration // until no more faults are injected
	url       string        // of a real server, "" for the embedded one
	processes int
	listen    string // host and port; port 0 is any free one
}

// demoCommand returns the command `anteroom demo`.
func demoCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the library at work, with faults, and check what it promises",
		Long: `Several processes, with dozens of goroutines each, increment counters that nothing but
Anteroom's locks protects, while faults are injected: the server is away for a moment, a
lock's key is deleted, a lock is released by force, a holder never unlocks. Every fault
and every report of the library is printed.

The exit status is 0 if there was no violation and every injected loss was reported.

Without --redis the server is an embedded one, and the processes are Managers of this
program. With --redis they are real processes; the server is paused for a moment where
that is permitted, and the keys of the run are deleted at the end.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			// The second signal is nobody's but the system's: it ends us at once.
			context.AfterFunc(ctx, stop)
			return runDemo(ctx, o, cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&o.length, "for", 20*time.Second, "how long to run; what is under way then is still settled")
	cmd.Flags().StringVar(&o.url, "redis", "", "URL of a real server, redis://user:password@host:6379/0")
	cmd.Flags().IntVar(&o.processes, "processes", 4, "how many processes take part")
	cmd.Flags().StringVar(&o.listen, "listen", "127.0.0.1:0", "address of /metrics; embedded: of /debug/anteroom/")
	return cmd
}

// validate names the flag that is out of bounds, and the bound. The URL and the address are
// judged by those who use them.
func (o options) validate() error {
	switch {
	case o.length < time.Second || o.length > 24*time.Hour:
		return usageError("--for is %v; it must be from 1s to 24h", o.length)
	case o.processes < 2 || o.processes > 64:
		return usageError("--processes is %d; it must be from 2 to 64, because one alone shares nothing", o.processes)
	}
	return nil
}

// runDemo carries out one run. The order is what matters: the address is taken and a lock is
// tried before any process begins, so that what cannot work fails at once and leaves
// nothing; and the keys are removed before the last line is printed, so that nothing is
// said after it.
//
// It returns nil if the library kept its word, errFailed where the output says that it did
// not, and another error where no run came about.
func runDemo(ctx context.Context, o options, out io.Writer) error {
	if err := o.validate(); err != nil {
		return err
	}
	d := newDemo(o, out)
	var err error
	if d.server, err = serverOf(o); err != nil {
		return err
	}
	defer d.server.close()
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer l.Close()
	if err := d.connect(ctx); err != nil {
		return err
	}
	if err := d.recruit(); err != nil {
		return errors.Join(err, d.dismiss(), d.disconnect())
	}
	stop := d.serveMetrics(l)
	pages := fmt.Sprintf("metrics: http://%s/metrics", l.Addr())
	if d.page != nil {
		pages += fmt.Sprintf("; debug page: http://%s%s", l.Addr(), debugPath)
	}
	d.console.say("%d processes, %s; keys begin with %s; %s", o.processes, d.where(), d.prefix, pages)
	d.play(ctx)
	stop()
	if err := d.disconnect(); err != nil {
		d.console.say("at the end: %v", err)
	}
	return d.conclude()
}

// serverOf returns the server that the flags name.
func serverOf(o options) (server, error) {
	if o.url == "" {
		return newEmbedded()
	}
	return newReal(o.url)
}
