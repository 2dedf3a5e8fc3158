package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// releaseOptions are the flags of `anteroom release`.
type releaseOptions struct {
	force, yes bool
	timeout    time.Duration
}

// releaseCommand returns the command `anteroom release`.
func releaseCommand() *cobra.Command {
	var o releaseOptions
	cmd := &cobra.Command{
		Use:   "release --force [flags] KEY",
		Short: "Break a lock that somebody holds",
		Long: `Deletes the lock of KEY, no matter who holds it. The holder is notified immediately, on a
channel of its own, and the next waiter is admitted. The notification does not stop the
holder's work, so for a moment two may be at work. A holder that is not a client of
Anteroom cannot be notified.

It shows who holds the lock and asks for confirmation; --yes skips the question, and is
required if standard input is not a terminal. If the holder has changed when the answer is
given, it asks again. Of an RWMutex or a Semaphore all holders lose it.

The exit status is 0 if a lock was released, 1 if nobody held it or the answer was not
yes, 64 for a wrong command line or a question that cannot be answered, 69 if Redis does
not answer (the lock may or may not have been released; repeating the command is safe),
77 if Redis refuses or the key is not a lock.`,
		Example: `  anteroom release --force order:42
  anteroom release --force --yes order:42`,
		Args: named(false),
		RunE: func(cmd *cobra.Command, keys []string) error { return runRelease(cmd, o, keys[0]) },
	}
	cmd.Flags().BoolVarP(&o.force, "force", "f", false, "required: confirms that the lock of another holder is to be broken")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	addTimeoutFlag(cmd, &o.timeout)
	return cmd
}

// errNoForce explains what --force does.
var errNoForce = errors.New(`release breaks a lock that somebody else holds, and does not stop that holder's work.
A program that holds a lock releases it itself, and a lease that nobody renews expires by
itself ("anteroom status KEY" shows when). If that does not help, add --force`)

// errNobodyAsked explains why nothing was done.
var errNobodyAsked = errors.New("release asks before it breaks a lock, and standard input is not a terminal; use --yes")

// runRelease shows who holds the lock, asks, and releases it.
func runRelease(cmd *cobra.Command, o releaseOptions, key string) error {
	if !o.force {
		return usageError("%w", errNoForce)
	}
	in, asked := terminal(cmd.InOrStdin()), !o.yes
	if asked && in == nil {
		return usageError("%w", errNobodyAsked)
	}
	op, err := newOperator(cmd, o.timeout)
	if err != nil {
		return err
	}
	defer op.close()
	r := &release{op: op, key: key, errs: cmd.ErrOrStderr()}
	held, err := r.inspect(cmd.Context())
	if err != nil {
		return err
	}
	if asked {
		if held, err = r.ask(cmd.Context(), in, held); err != nil {
			return err
		}
	}
	if len(held) == 0 {
		return r.free()
	}
	return r.breakLock(cmd.Context(), cmd.OutOrStdout())
}

// release is one forced release.
type release struct {
	op   *operator
	key  string
	errs io.Writer
}

// inspect shows who holds the lock.
func (r *release) inspect(ctx context.Context) ([]holder, error) {
	info, err := r.op.m.Inspect(ctx, r.key)
	if err != nil {
		return nil, answered(err)
	}
	held := statusOf(r.key, info, nil)
	holders := held.Holders
	for _, h := range holders {
		host, pid := h.where()
		what := "is held by"
		switch units := held.units(h); {
		case units == "read":
			what = "is read by"
		case units == "write":
			what = "is written by"
		case units != "-":
			what = "is held, " + units + " of its " + number(held.Capacity) + " units, by"
		case h.kept:
			what = "is no longer held; MinHold keeps it taken after its release by"
		case h.Client == nil:
			what = "is held by a client of another kind, which cannot be notified:"
		}
		fmt.Fprintf(r.errs, "%s %s %s (host %s, pid %s)\n", shown(r.key), what, shown(h.Field), host, pid)
	}
	if len(holders) > 0 {
		fmt.Fprintf(r.errs, "lease left: %s; waiting in line: %d; listening for its release: %s\n", remaining(info.TTL), info.InLine, listening(info.Subscribers))
	}
	return holders, nil
}

// ask asks until the answer is about the current holders. It returns them if the answer is yes. Input typed before a
// question is discarded.
func (r *release) ask(ctx context.Context, in *os.File, held []holder) ([]holder, error) {
	for {
		if len(held) == 0 {
			return nil, r.free()
		}
		forget(in)
		fmt.Fprint(r.errs, "release it by force? [y/N] ")
		text, err := bufio.NewReader(in).ReadString('\n')
		if err != nil {
			fmt.Fprintln(r.errs) // ^D leaves the cursor behind the question
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
		default:
			fmt.Fprintln(r.errs, "not released")
			return nil, &exitError{status: exitNone}
		}
		now, err := r.op.m.Inspect(ctx, r.key)
		if err != nil {
			return nil, answered(err)
		}
		if same(holdersOf(now), held) {
			return held, nil
		}
		fmt.Fprintln(r.errs, "not released: the holder has changed")
		if held, err = r.inspect(ctx); err != nil {
			return nil, err
		}
	}
}

// breakLock deletes the lock and names the holders that it broke. They may be others than those that were shown.
func (r *release) breakLock(ctx context.Context, out io.Writer) error {
	broken, err := r.op.m.ForceRelease(ctx, r.key)
	switch {
	case err != nil:
		return answered(err)
	case len(broken) == 0:
		return r.free()
	}
	how := "MinHold kept for"
	for i, field := range broken {
		if !holderOf(field).kept {
			how = "was held by"
		}
		broken[i] = shown(field)
	}
	return printed(fmt.Fprintf(out, "released %s, which %s %s\n", shown(r.key), how, strings.Join(broken, " and ")))
}

// free reports that there was nothing to release.
func (r *release) free() error {
	fmt.Fprintf(r.errs, "%s is free: nothing was released\n", shown(r.key))
	return &exitError{status: exitNone}
}

// same reports whether two answers have the same holders, in any order.
func same(a, b []holder) bool {
	fields := func(list []holder) (f []string) {
		for _, h := range list {
			f = append(f, h.Field)
		}
		slices.Sort(f)
		return f
	}
	return slices.Equal(fields(a), fields(b))
}

// remaining formats what is left of a lease.
func remaining(ttl time.Duration) string {
	if ttl < 0 {
		return "unlimited"
	}
	return ttl.Round(time.Millisecond).String()
}

// listening formats the number of listeners.
func listening(n int) string {
	if n < 0 {
		return "unknown"
	}
	return fmt.Sprint(n)
}

// terminal returns in if it is a terminal, nil otherwise.
func terminal(in io.Reader) *os.File {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}
