package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// statusOptions are the flags of `anteroom status`.
type statusOptions struct {
	json, quiet bool
	timeout     time.Duration
}

// statusCommand returns the command `anteroom status`.
func statusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [flags] KEY...",
		Short: "Show who holds a lock",
		Long: `Shows for each KEY who holds it, on which host and in which process, how much of its
lease is left, the newest fencing token, how many processes wait in line for it and which
is the first, and how many connections listen for its release. It changes nothing. The
answer may be out of date when it is read.

An RWMutex and a Semaphore may have several holders, of which each has a row: a process
that reads or writes, or how many units it has. USED is how many units are held of how
many: those of the holder that counts with the fewest.

The token is that of the last grant. A holder of exec or lock has that one; after hand-offs
within a Go program its holder has a greater one.

A lock is free, held, or kept: released, but kept taken by MinHold for what is left of its
time. A string with a time to live is a lock of redsync, redislock or rueidislock, or no
lock; of that only the time to live is known. Host and process come from the holder's name;
they are "-" if the program has set a name of another form.

The exit status is 0 if every key was answered, even if held. With --quiet it is 0 if at
least one of them is held, kept or such a string, and 1 if all are free. It is 64 for a
wrong command line, 69 if Redis does not answer, 77 if Redis refuses or a key is not a lock.`,
		Example: `  anteroom status order:42
  anteroom status --json order:42 order:43 | jq -r '.holders[].host'
  anteroom status --quiet nightly-report || echo "not running"`,
		Args: named(true),
		RunE: func(cmd *cobra.Command, keys []string) error { return runStatus(cmd, o, keys) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one line of JSON for each key")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print nothing; the exit status says whether a lock is held")
	addTimeoutFlag(cmd, &o.timeout)
	cmd.MarkFlagsMutuallyExclusive("json", "quiet")
	return cmd
}

// lockStatus is the output for one key.
type lockStatus struct {
	keyJSON
	State       string   `json:"state"`
	Kind        *string  `json:"kind"`     // nil for a free key and a string
	Used        *int64   `json:"used"`     // units that are held; nil unless the kind is kindSemaphore. So is Capacity
	Capacity    *int64   `json:"capacity"` // the least that a holder counts with
	Holders     []holder `json:"holders"`
	TTL         *int64   `json:"ttl_ms"` // nil for a free key, and for one that never ends
	Token       *int64   `json:"token"`  // of the last grant; nil if there is none
	Subscribers *int     `json:"subscribers"`
	InLine      *int     `json:"in_line"` // nil for a refused key and a string
	First       *string  `json:"first"`   // the client that is first in line; nil if nobody waits
	OpenMS      *int64   `json:"open_ms"` // nil unless the lock is left to clients outside the line
	Error       string   `json:"error,omitempty"`

	ttl   time.Duration
	guess bool // a string of any form
}

// The states of a key.
const (
	stateFree    = "free"
	stateHeld    = "held"
	stateKept    = "kept"    // by MinHold
	stateString  = "string"  // with a time to live, as another library's lock
	stateRefused = "refused" // Redis did not answer the request, or the key is not a lock
)

// The kinds of locks. What has another form than those of an RWMutex and a Semaphore counts as a Mutex.
const (
	kindMutex     = "mutex"
	kindRWMutex   = "rwmutex"
	kindSemaphore = "semaphore"
)

// runStatus inspects the keys in turn. Answers that came before Redis fell silent are still shown.
func runStatus(cmd *cobra.Command, o statusOptions, keys []string) error {
	op, err := newOperator(cmd, o.timeout)
	if err != nil {
		return err
	}
	defer op.close()
	var all []lockStatus
	for _, key := range keys {
		info, ask := op.m.Inspect(cmd.Context(), key)
		if s, is := op.ofString(cmd.Context(), o.timeout, key, ask); is {
			all = append(all, s)
			continue
		}
		ask = answered(ask)
		if code, _ := status(ask); code == exitUnavailable {
			err = errors.Join(ask, err)
			break
		}
		all = append(all, statusOf(key, info, ask))
		err = errors.Join(err, ask)
	}
	return errors.Join(o.print(cmd, all), o.judge(all, err))
}

// statusOf converts one answer.
func statusOf(key string, info anteroom.Info, err error) lockStatus {
	s := lockStatus{keyJSON: keyOf(key), State: stateFree, Holders: holdersOf(info), ttl: info.TTL}
	if err != nil {
		s.State, s.Error = stateRefused, err.Error()
		return s
	}
	if info.Locked {
		s.State = stateKept
		for _, h := range s.Holders {
			if !h.kept {
				s.State = stateHeld
			}
		}
		if info.TTL >= 0 {
			ms := info.TTL.Milliseconds()
			s.TTL = &ms
		}
		kind := kindOf(info)
		if s.Kind = &kind; kind == kindSemaphore {
			used := int64(0)
			for _, h := range s.Holders {
				used += h.Count
			}
			s.Used, s.Capacity = &used, &info.Capacity
		}
	}
	if info.Token > 0 {
		s.Token = &info.Token
	}
	if info.Subscribers >= 0 {
		s.Subscribers = &info.Subscribers
	}
	s.InLine = &info.InLine
	if info.First != "" {
		s.First = &info.First
	}
	if info.Open > 0 {
		ms := info.Open.Milliseconds()
		s.OpenMS = &ms
	}
	return s
}

// kindOf returns the kind of a lock that is held.
func kindOf(info anteroom.Info) string {
	switch info.Kind {
	case "RWMutex":
		return kindRWMutex
	case "Semaphore":
		return kindSemaphore
	}
	return kindMutex
}

// judge returns what determines the exit status: the error or, with --quiet, that no key is taken.
func (o statusOptions) judge(all []lockStatus, err error) error {
	if err != nil || !o.quiet {
		return err
	}
	for _, s := range all {
		if s.State == stateHeld || s.State == stateKept || s.State == stateString {
			return nil
		}
	}
	return &exitError{status: exitNone}
}

// print writes the answers, as lines of JSON or as a table with notes on standard error.
func (o statusOptions) print(cmd *cobra.Command, all []lockStatus) error {
	if o.quiet || len(all) == 0 {
		return nil
	}
	if o.json {
		for _, s := range all {
			if err := writeJSON(cmd.OutOrStdout(), s); err != nil {
				return err
			}
		}
		return nil
	}
	if err := table(cmd.OutOrStdout(), all); err != nil {
		return err
	}
	for _, s := range all {
		for _, n := range s.notes() {
			fmt.Fprintf(cmd.ErrOrStderr(), "anteroom: %s: %s\n", s.name(), n)
		}
	}
	return nil
}

// table prints a row for each holder, and one for each key without a holder.
func table(out io.Writer, all []lockStatus) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tSTATE\tKIND\tUSED\tHOST\tPID\tTTL\tTOKEN\tLINE\tFIRST\tSUBSCRIBERS\tHOLDER\tUNITS\tNOTE")
	for _, s := range all {
		for _, h := range s.rows() {
			host, pid := h.where()
			name, first, note := "-", "-", "-"
			if h.Field != "" {
				name = shown(h.Field)
			}
			if h.Note != "" {
				note = shown(h.Note)
			}
			if s.First != nil {
				first = shown(*s.First)
			}
			fmt.Fprintln(w, strings.Join([]string{
				s.name(), s.State, s.kind(), s.used(), host, pid, s.left(), number(s.Token), number(s.InLine), first, number(s.Subscribers), name, s.units(h), note,
			}, "\t"))
		}
	}
	_ = w.Flush() // into memory
	return printed(fmt.Fprint(out, text.String()))
}

// rows returns the holders, or an empty one if there is none.
func (s lockStatus) rows() []holder {
	if len(s.Holders) == 0 {
		return []holder{{}}
	}
	return s.Holders
}

// name returns the key for display.
func (s lockStatus) name() string {
	if s.Base64 != nil {
		return shown(string(s.Base64))
	}
	return shown(s.Key)
}

func (s lockStatus) kind() string {
	if s.Kind == nil {
		return "-"
	}
	return *s.Kind
}

// used formats how many units are held of how many.
func (s lockStatus) used() string {
	if s.Used == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", *s.Used, *s.Capacity)
}

// units formats what a holder has of a lock that several may hold.
func (s lockStatus) units(h holder) string {
	switch kind := s.kind(); {
	case kind == kindSemaphore:
		return strconv.FormatInt(h.Count, 10)
	case kind == kindRWMutex && h.Count == lettucecompat.AllUnits:
		return "write"
	case kind == kindRWMutex:
		return "read"
	}
	return "-"
}

// left formats what is left of the lease.
func (s lockStatus) left() string {
	switch {
	case s.TTL != nil:
		return s.ttl.Round(time.Millisecond).String()
	case len(s.Holders) > 0:
		return "never"
	}
	return "-"
}

// notes returns what a person should know in addition to the table.
func (s lockStatus) notes() []string {
	var notes []string
	if s.guess {
		notes = append(notes, "is a string with a time to live: a lock of redsync, redislock or rueidislock, or no lock")
	}
	if n := len(s.Holders); n > 1 && s.kind() == kindMutex {
		notes = append(notes, fmt.Sprintf("has %d fields instead of one: a client that breaks the protocol has written to it", n))
	}
	if len(s.Holders) > 0 && s.TTL == nil {
		notes = append(notes, "has no time to live, unlike every lock of Anteroom: it never expires")
	}
	if s.OpenMS != nil {
		notes = append(notes, fmt.Sprintf("is left to clients outside the line, for %d ms more", *s.OpenMS))
	}
	return notes
}

// number formats a value that may be unknown.
func number[T int | int64](n *T) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(int64(*n), 10)
}
