package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	anteroom "github.com/anteroom/anteroom/sync"
)

// lockCommand returns the command `anteroom lock`.
func lockCommand() *cobra.Command {
	f, untilEOF := defaultFlags, false
	cmd := &cobra.Command{
		Use:   "lock [flags] KEY",
		Short: "Hold a lock until a signal arrives",
		Long: `Waits for the lock KEY, prints one line with the key, the holder and the fencing token ("-"
without --fencing), and holds the lock until a signal such as TERM or INT arrives. Then it
releases the lock and ends. A script's background job (anteroom lock KEY &) ignores INT: use
TERM, as kill does. With --until-eof the end of standard input ends it, too: give it a pipe
from the program that needs the lock, so that the lock does not outlive that program.

If the lock is lost (Redis unreachable for longer than the lease, the key deleted, a forced
release), lock says why and ends immediately. It supervises nothing: the program that
relies on the lock must watch for that. If it can be started by another program, use exec,
whose help says what -s, -x and --of are for.

The exit status is 0 if the lock was held and released. It is 128+n if signal n ended the
wait, 64 for a wrong command line, 69 if Redis cannot be reached, 74 if the line could not
be written, 75 (-E changes it) if somebody else has the lock, also where the end of standard
input ended the wait, 76 if the lock was lost, 77 if Redis refuses.`,
		Example: `  anteroom lock deploys
  anteroom lock -w 10s --fencing stock
  anteroom lock --of 4 thumbnails
  coproc anteroom lock --until-eof orders; read -r key holder token <&"${COPROC[0]}"`,
		Args: named(false),
		RunE: func(cmd *cobra.Command, keys []string) error { return runLock(cmd, f, keys[0], untilEOF) },
	}
	f.addTo(cmd)
	cmd.Flags().BoolVar(&untilEOF, "until-eof", false, "also release and end when standard input ends")
	return cmd
}

// runLock holds a lock until it is lost or its end is requested.
func runLock(cmd *cobra.Command, f execFlags, key string, untilEOF bool) error {
	f.note = cmp.Or(f.note, "lock")
	cfg, err := f.lock(cmd, key)
	if err != nil {
		return err
	}
	x, err := begin(cmd, f, cfg)
	if err != nil {
		return err
	}
	defer x.end()
	if untilEOF {
		x.eof = make(chan struct{})
		go func() {
			defer close(x.eof)
			_, _ = io.Copy(io.Discard, cmd.InOrStdin())
		}()
	}
	hold, err := x.acquire(cmd.Context())
	if err != nil {
		return err
	}
	return x.untilEnd(hold, cmd.OutOrStdout())
}

// lastWord bounds how long the end waits, after the release, for a reader of the announcement.
const lastWord = time.Second

// untilEnd announces the lock, waits for what ends the hold, and releases it. A reader that does not read, or a
// terminal stopped by ^S, delays none of that.
func (x *execution) untilEnd(hold *anteroom.Hold, out io.Writer) (err error) {
	written := make(chan error, 1)
	go func() {
		token := "-"
		if n, ok := hold.Token(); ok {
			token = strconv.FormatInt(n, 10)
		}
		written <- printed(fmt.Fprintf(out, "%s  %s  %s\n", shown(x.key), shown(hold.Holder()), token))
	}()
	for waits := true; waits; {
		select {
		case err = <-written:
			written, waits = nil, err == nil
		case <-x.signals:
			waits = false
		case <-x.eof:
			waits = false
		case <-hold.Context().Done():
			waits = false
		}
	}
	why := hold.Err()
	if why != nil {
		x.gaveUp = true // nothing is worth a wait: Redis may let another in when the margin is over
	}
	lost := x.release(hold)
	if written != nil { // it was held, if only for a moment: the reader is to know
		select {
		case err = <-written:
		case <-time.After(lastWord):
		}
	}
	switch {
	case why != nil:
		x.errs.say("lock %q lost: %s", x.key, reason(why))
		return &exitError{status: exitLost}
	case lost:
		x.errs.say("lock %q lost: the release did not find it", x.key)
		return &exitError{status: exitLost}
	case err == nil && x.flags.verbose:
		x.errs.say("lock %q released", x.key)
	}
	return err
}
