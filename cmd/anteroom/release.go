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
		Long: `Deletes the lock of KEY, whoever holds it. The holder is told at once, on a channel of its
own, and the next one who waits is let in at once, too: whoever works under the lock is
told and not stopped, so for a moment two may be at work. A holder that is no client of
Anteroom cannot be told.

It shows who holds the lock and asks; --yes does not ask, and has to be given where
standard input is no terminal. If another one holds the lock when the answer is given, it
asks again.

The exit status is 0 if a lock was released, 1 if nobody held it or the answer was not
yes, 64 for a wrong command line or a question that nobody answers, 69 if Redis does not
answer (the lock may then be released or not; asking again is safe), 77 if Redis refuses
or the key is no lock.

` + redisHelp,
		Example: `  anteroom release --force order:42
  anteroom release --force --yes order:42`,
		Args: named(false),
		RunE: func(cmd *cobra.Command, keys []string) error { return runRelease(cmd, o, keys[0]) },
	}
	cmd.Flags().BoolVarP(&o.force, "force", "f", false, "yes, a lock that another one holds; nothing is done without it")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	addTimeoutFlag(cmd, &o.timeout)
	return cmd
}

// errNoForce explains what is missing.
var errNoForce = errors.New(`release breaks a lock that somebody else holds, and whoever works under it works on.
A program that holds a lock releases it itself, and a lease that nobody renews ends by
itself ("anteroom status KEY" shows when). If that is no way out, add --force`)

// errNobodyAsked explains why nothing was done.
var errNobodyAsked = errors.New("nobody is here to be asked, because standard input is no terminal: add --yes to release it without a question")

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
	held, err := r.look(cmd.Context())
	if err != nil {
		return err
	}
	if asked {
		if held, err = r.ask(cmd.Context(), in, held); err != nil {
			return err
		}
	}
	// What was not found a moment ago is still asked for if nobody is asked: it forgets the
	// last grantee, so that no renewal on its way takes a lock that vanished again.
	was, err := op.m.ForceRelease(cmd.Context(), key)
	switch {
	case err != nil:
		return answered(err)
	case !was:
		return r.free()
	case len(held) == 0:
		return printed(fmt.Fprintf(cmd.OutOrStdout(), "released %s\n", shown(key)))
	}
	return printed(fmt.Fprintf(cmd.OutOrStdout(), "released %s, which was held by %s\n", shown(key), names(held)))
}

// release is one release by force.
type release struct {
	op   *operator
	key  string
	errs io.Writer
}

// look shows who holds the lock.
func (r *release) look(ctx context.Context) ([]holder, error) {
	info, err := r.op.m.Inspect(ctx, r.key)
	if err != nil {
		return nil, answered(err)
	}
	holders := holdersOf(info)
	for _, h := range holders {
		host, pid := h.where()
		what := "is held by"
		switch {
		case h.kept:
			what = "is held by nobody any more; MinHold keeps it taken after"
		case h.Client == nil:
			what = "is held by a client of another kind, which cannot be told,"
		}
		fmt.Fprintf(r.errs, "%s %s %s (host %s, pid %s)\n", shown(r.key), what, shown(h.Field), host, pid)
	}
	if len(holders) > 0 {
		fmt.Fprintf(r.errs, "left of its lease: %s; listening for its release: %s\n", remaining(info.TTL), listening(info.Subscribers))
	}
	return holders, nil
}

// ask asks until the answer is about those who hold the lock when it is given. It returns
// them if the answer is yes. What was typed before a question is no answer to it.
func (r *release) ask(ctx context.Context, in *os.File, held []holder) ([]holder, error) {
	for {
		if len(held) == 0 {
			return nil, r.free()
		}
		forget(in)
		fmt.Fprint(r.errs, "release it by force? [y/N] ")
		text, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && text == "" {
			fmt.Fprintln(r.errs)
			return nil, usageError("%w", errNobodyAsked)
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
		fmt.Fprintln(r.errs, "not released: that has changed meanwhile")
		if held, err = r.look(ctx); err != nil {
			return nil, err
		}
	}
}

// free says that there was nothing to do.
func (r *release) free() error {
	fmt.Fprintf(r.errs, "%s is free: nothing was released\n", shown(r.key))
	return &exitError{status: exitNone}
}

// same reports whether two looks saw the same holders, in whatever order.
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

// names lists holders.
func names(list []holder) string {
	var all []string
	for _, h := range list {
		all = append(all, shown(h.Field))
	}
	return strings.Join(all, " and ")
}

// remaining words what is left of a lease.
func remaining(ttl time.Duration) string {
	if ttl < 0 {
		return "it never ends"
	}
	return ttl.Round(time.Millisecond).String()
}

// listening words how many listen.
func listening(n int) string {
	if n < 0 {
		return "not known"
	}
	return fmt.Sprint(n)
}

// terminal returns in if somebody may sit in front of it, nil otherwise. The null device
// passes for one, and is found out when it does not answer.
func terminal(in io.Reader) *os.File {
	f, ok := in.(*os.File)
	if !ok {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return f
}
