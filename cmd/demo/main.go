package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/anteroom/anteroom/internal/child"
)

func main() {
	// go-redis would write a line to standard error for each connection that a fault cuts; the library reports what
	// matters of that.
	logging.Disable()
	child.Run(roles)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The second signal gets the default action: it ends the process immediately.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// roles are the roles of a child of this program.
var roles = map[string]child.Role{workerRole: runWorker}

// The exit statuses.
const (
	exitFailed = 1 // the library broke a promise, or no run took place
	exitUsage  = 2 // the command line is wrong; nothing was done
)

// errFailed ends a run whose output already says what failed.
var errFailed = errors.New("failed")

// errUsage is wrapped by errors in the command line.
var errUsage = errors.New("see --help")

// run carries out one command line and returns the exit status.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if err == nil {
		err = runDemo(ctx, o, out)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errFailed):
		return exitFailed
	}
	fmt.Fprintln(errs, "demo:", err)
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitFailed
}

// options are the flags.
type options struct {
	length    time.Duration // until faults stop being injected; 0 for no end
	between   time.Duration // two faults
	url       string        // of a real server, "" for the embedded one
	processes int
	listen    string // host and port; port 0 is any free one
	verbose   bool
	json      bool
}

const usage = `Shows the library at work, with faults, and checks what it promises.

Several processes, with dozens of goroutines each, increment counters that nothing but
Anteroom's locks protects, while faults are injected: the server is unreachable for a
moment, a lock's key is deleted, a lock is released by force, a holder never unlocks. The
output shows each fault, what the library said about it, and how long that took.

The exit status is 0 if there was no violation and every injected loss was reported.

Without --redis the server is an embedded one, and the processes are Managers of this
program. With --redis they are real processes; the server is paused for a moment where
that is permitted, and the keys of the run are deleted at the end.

`

// parse parses the command line. It writes the answer to --help to errs.
func parse(args []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("demo", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.DurationVar(&o.length, "for", 20*time.Second, "how `long` to run, from 1s to 24h, or 0 for no end; the last fault is carried through")
	f.DurationVar(&o.between, "between", 400*time.Millisecond, "`pause` between two faults, up to 1h")
	f.StringVar(&o.url, "redis", "", "`URL` of a real server, redis://user:password@host:6379/0")
	f.IntVar(&o.processes, "processes", 4, "how `many` processes take part, from 2 to 64")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` of /metrics; embedded: of /debug/anteroom/")
	f.BoolVar(&o.verbose, "verbose", false, "also print the library's other events, and figures every second")
	f.BoolVar(&o.json, "json", false, "make the last line an object in JSON")
	err = f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(errs, usage)
		f.VisitAll(func(f *flag.Flag) {
			what, about := flag.UnquoteUsage(f)
			if f.DefValue != "" && f.DefValue != "false" {
				about += " (default " + f.DefValue + ")"
			}
			fmt.Fprintf(errs, "  %-19s %s\n", strings.TrimSpace("--"+f.Name+" "+what), about)
		})
		return o, err
	case err != nil:
		// It names the flag last, with one dash.
		text := err.Error()
		at := strings.LastIndex(text, " -") + 1
		return o, fmt.Errorf("%s--%s; %w", text[:at], strings.TrimLeft(text[at:], "-"), errUsage)
	case f.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q; %w", f.Arg(0), errUsage)
	}
	return o, o.validate()
}

// validate names the flag that is out of bounds, and the bound. The URL and the address are checked where they are
// used.
func (o options) validate() error {
	switch {
	case o.length != 0 && (o.length < time.Second || o.length > 24*time.Hour):
		return fmt.Errorf("--for is %v; it must be from 1s to 24h, or 0; %w", o.length, errUsage)
	case o.between < 0 || o.between > time.Hour:
		return fmt.Errorf("--between is %v; it must be from 0s to 1h; %w", o.between, errUsage)
	case o.processes < 2 || o.processes > 64:
		return fmt.Errorf("--processes is %d; it must be from 2 to 64, because one alone shares nothing; %w", o.processes, errUsage)
	}
	return nil
}

// runDemo carries out one run. The order matters: the address is taken and a lock is tried before any process starts,
// so that what cannot work fails immediately and leaves nothing behind; and the keys are removed before the last line
// is printed, so that it is the last one.
//
// It returns nil if the library kept its promises, errFailed if the output says that it did not, and another error if
// no run took place.
func runDemo(ctx context.Context, o options, out io.Writer) error {
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
	d.introduce(l.Addr())
	d.play(ctx)
	stop()
	if err := d.disconnect(); err != nil {
		d.console.say(markNote, "%v", err)
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
