package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// watchOptions are the flags of `anteroom watch`.
type watchOptions struct {
	json, fixed bool
	count       int           // end after so many releases; 0 means no limit
	length      time.Duration // end after this time, measured from the first confirmed subscription; 0 means no limit
}

// watchCommand returns the command `anteroom watch`.
func watchCommand() *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch [flags] [PATTERN]",
		Short: "Show releases as they happen",
		Long: `Prints a line for each release of a key that matches PATTERN: when it was received, the
key, and who released it or, for a forced release, who forced it. PATTERN is a pattern of
Redis: * matches any text, ? one character, [ab] one of these, and a backslash quotes the
next character. Without a PATTERN every key matches.

Only announced releases are seen. A lease that expires, a DEL by hand, a hand-off within
a process, who gets the lock next, and what is given back of an RWMutex or a Semaphore are
not announced, and what is released while the
connection is down is missed: standard error reports when it is lost and when it is back.
Other messages on these channels are shown as such.

With --json every line has the fields time (of arrival) and event:
  release       key, holder, client, host, pid; release_time in ms by the releaser's clock
  malformed     a message that announces no release: key and payload, at most 4096 bytes
  disconnected  nothing is heard any more: error
  subscribed    releases are heard from now on
key_base64 is the exact key if it is not UTF-8. New events and fields may be added.

An interrupt ends it with exit status 0, and so does --for. With --count the exit status
is 0 if that many releases came, and otherwise 1. It is 64 for a wrong command line, 69
if Redis cannot be reached at the start, 77 if Redis refuses. After the start it
reconnects without limit.`,
		Example: `  anteroom watch 'order:*'
  anteroom watch --json | jq -r .key
  anteroom watch --fixed --count 1 --for 30s nightly-report && echo "done"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			// The second signal gets the default action: it ends the process immediately.
			context.AfterFunc(ctx, stop)
			return runWatch(ctx, cmd, o, args)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print lines of JSON")
	cmd.Flags().BoolVarP(&o.fixed, "fixed", "F", false, "PATTERN is a literal key")
	cmd.Flags().IntVarP(&o.count, "count", "n", 0, "end after so many releases; 0 means no limit")
	durationVar(cmd, &o.length, "for", "", "end after watching for this long; 0 means no limit")
	return cmd
}

// runWatch listens until ctx ends, or for as long as the flags say.
func runWatch(ctx context.Context, cmd *cobra.Command, o watchOptions, args []string) error {
	switch {
	case o.count < 0:
		return usageError("--count is %d; it must not be negative", o.count)
	case o.fixed && len(args) == 0:
		return usageError("--fixed: KEY is missing")
	}
	pattern := "*"
	if len(args) > 0 {
		pattern = args[0]
	}
	if o.fixed {
		if err := (anteroom.LockConfig{Key: pattern}).Validate(); err != nil {
			return usageError("--fixed: %w", plain{err})
		}
		pattern = lettucecompat.QuotePattern(pattern)
	}
	written, err := dialect(cmd)
	if err != nil {
		return err
	}
	rdb, err := connect(cmd)
	if err != nil {
		return err
	}
	defer rdb.Close()
	if _, cluster := rdb.(*redis.ClusterClient); cluster && written == lettucecompat.Redisson {
		return usageError("%w", errSharded)
	}
	r := &reporter{out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr(), json: o.json, most: o.count, dialect: written}
	l := &listener{
		rdb: rdb, patterns: written.ReleasePatterns(pattern),
		ping: pingEvery, patience: patience, length: o.length, report: r,
	}
	err = l.run(ctx)
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err == nil && r.seen < o.count:
		return &exitError{status: exitNone}
	}
	return err
}

// errSharded explains why nothing can be watched.
var errSharded = errors.New(`on a Cluster of Redis 7 or newer Redisson announces releases on the channels of shards, to which
nobody can listen by a pattern; where shardedSubscriptionMode is OFF use --dialect redisson-unsharded`)

// errEnough ends a listener that has heard as many releases as were requested.
var errEnough = errors.New("enough")

// reporter prints what a listener hears. It belongs to the listener's goroutine.
type reporter struct {
	out, errs io.Writer
	json      bool
	most      int // 0 for no limit
	seen      int
	dialect   lettucecompat.Dialect
}

// eventJSON is one line of --json. Fields that an event does not have are omitted.
type eventJSON struct {
	Time  string `json:"time"`
	Event string `json:"event"` // "release", "malformed", "subscribed" or "disconnected"
	*keyJSON
	*holder
	ReleaseTime *int64 `json:"release_time,omitempty"` // ms since 1970, as the message has it
	Payload     string `json:"payload,omitempty"`
	Error       string `json:"error,omitempty"`
}

// maxPayload bounds how much of a malformed message is repeated.
const maxPayload = 4096

// clockForm is the format of times: when the message was received, by the local clock.
const clockForm = "2006-01-02T15:04:05.000Z07:00"

func (r *reporter) line(now time.Time, event string, e eventJSON) error {
	e.Time, e.Event = now.Format(clockForm), event
	return writeJSON(r.out, e)
}

// subscribed reports that releases are heard from now on; missed is how long they were not.
func (r *reporter) subscribed(what string, missed time.Duration) error {
	if missed == 0 {
		fmt.Fprintf(r.errs, "anteroom: watching %s\n", shown(what))
	} else {
		fmt.Fprintf(r.errs, "anteroom: watching %s again after %v; releases in between are not shown\n", shown(what), missed.Round(time.Millisecond))
	}
	if !r.json {
		return nil
	}
	return r.line(time.Now(), "subscribed", eventJSON{})
}

// disconnected reports that nothing is heard any more.
func (r *reporter) disconnected(err error) error {
	fmt.Fprintf(r.errs, "anteroom: the connection is lost (%s); reconnecting\n", harmless(err.Error()))
	if !r.json {
		return nil
	}
	return r.line(time.Now(), "disconnected", eventJSON{Error: err.Error()})
}

// heard prints one message. It returns errEnough after the last requested one. Every message counts, since every one
// wakes waiters.
// It may come by several patterns, of which this one has number i.
func (r *reporter) heard(i int, channel, payload string) error {
	now := time.Now()
	a, valid := r.dialect.ParseRelease(channel, payload)
	if !r.dialect.Covers(i, a.Key) {
		return nil
	}
	if !valid && slices.Contains(lettucecompat.Notices, payload) {
		return nil
	}
	key := keyOf(a.Key)
	var err error
	switch {
	case r.json && !valid:
		err = r.line(now, "malformed", eventJSON{keyJSON: &key, Payload: payload[:min(len(payload), maxPayload)]})
	case r.json && a.At.IsZero(): // Redisson's messages say neither who released nor when
		err = r.line(now, "release", eventJSON{keyJSON: &key})
	case r.json:
		h, at := holderOf(a.Holder), a.At.UnixMilli()
		err = r.line(now, "release", eventJSON{keyJSON: &key, holder: &h, ReleaseTime: &at})
	case !valid:
		err = printed(fmt.Fprintf(r.out, "%s  %s  (not a release message: %s)\n", now.Format(clockForm), shown(a.Key), excerpt(payload)))
	case a.At.IsZero():
		err = printed(fmt.Fprintf(r.out, "%s  %s\n", now.Format(clockForm), shown(a.Key)))
	default:
		err = printed(fmt.Fprintf(r.out, "%s  %s  %s\n", now.Format(clockForm), shown(a.Key), shown(a.Holder)))
	}
	if err != nil {
		return err
	}
	if r.seen++; r.seen == r.most {
		return errEnough
	}
	return nil
}
