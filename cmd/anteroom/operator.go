package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The exit statuses of list, status, watch, release and doctor, besides those of exit.go.
const (
	exitNone    = 1  // not found: no lock held, nothing released, too few releases seen, an incomplete list, or a problem
	exitOutput  = 74 // EX_IOERR: the output could not be written
	exitRefused = 77 // EX_NOPERM: Redis refused; retrying does not help
)

// Bounds of --timeout. The maximum is the library's own.
const (
	defaultTimeout = 5 * time.Second
	minTimeout     = 10 * time.Millisecond
	maxTimeout     = time.Minute
)

// addTimeoutFlag adds the flag --timeout to a command.
func addTimeoutFlag(cmd *cobra.Command, d *time.Duration) {
	*d = defaultTimeout
	durationVar(cmd, d, "timeout", "", "time limit for each answer of Redis")
}

// named returns a check of the arguments: at least one key, and at most one unless many.
func named(many bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s: KEY is missing", cmd.Name())
		}
		if len(args) > 1 && !many {
			return fmt.Errorf("%s: give one KEY, not %d", cmd.Name(), len(args))
		}
		for _, key := range args {
			if err := (anteroom.LockConfig{Key: key}).Validate(); err != nil {
				return fmt.Errorf("%s: %w", cmd.Name(), plain{err})
			}
		}
		return nil
	}
}

// operator inspects and breaks locks. It never holds one.
type operator struct {
	m     *anteroom.Manager
	rdb   redis.UniversalClient
	close func()
}

// newOperator returns an operator for the Redis that the command line names. It sends nothing to Redis yet.
func newOperator(cmd *cobra.Command, timeout time.Duration) (*operator, error) {
	if timeout < minTimeout || timeout > maxTimeout {
		return nil, usageError("--timeout is %v; it must be from %v to %v", timeout, minTimeout, maxTimeout)
	}
	written, err := dialect(cmd)
	if err != nil {
		return nil, err
	}
	rdb, err := connect(cmd)
	if err != nil {
		return nil, err
	}
	// Every failure is returned as the answer to a request, so nothing is logged beside it.
	m, err := anteroom.NewManager(rdb, anteroom.Config{Dialect: anteroom.Dialect(written), CommandTimeout: timeout, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		_ = rdb.Close()
		return nil, usageError("%w", err)
	}
	return &operator{m, rdb, func() {
		_ = m.Close(context.Background()) // nothing is held, so it does not wait
		_ = rdb.Close()
	}}, nil
}

// answered maps an error of the library to an exit status: redisError's, or exitRefused if Redis answered with a
// refusal.
func answered(err error) error {
	if err = redisError(err); errors.Is(err, anteroom.ErrConfig) {
		return &exitError{status: exitRefused, err: plain{err}}
	}
	return err
}

// unanswered maps an error of a command that the library does not know to an exit status.
func unanswered(err error) error {
	if lettucecompat.Permanent(err) {
		return &exitError{status: exitRefused, err: fmt.Errorf("redis refuses: %w", err)}
	}
	return &exitError{status: exitUnavailable, err: fmt.Errorf("redis does not answer: %w", err)}
}

// plain is a library error about a key, an argument or a permission, reworded for a user of the tool, who has
// configured nothing and repeats no command.
type plain struct{ error }

// notLock matches what the library's scripts answer about a key that holds something else.
var notLock = regexp.MustCompile(`(?:^|: )[A-Z]+ the key (holds (?:.*, not a lock|a hash that is no lock|a lock of another kind|an? (?:Mutex|RWMutex|Semaphore)))`)

// kindHint says, to a user of exec or lock, with which flags a lock of another kind is taken.
var kindHint = map[string]string{
	"holds a Mutex":                "for -s, -x and --of it has to be another key",
	"holds an RWMutex":             "it is for -s and -x",
	"holds a Semaphore":            "it is for --of",
	"holds a lock of another kind": "an RWMutex or a Semaphore? See -s, -x and --of",
}

// Error says what is wrong, and with which key.
func (p plain) Error() string {
	text := p.error.Error()
	e, ok := errors.AsType[*anteroom.Error](p.error)
	if m := notLock.FindStringSubmatch(text); m != nil && ok {
		text = fmt.Sprintf("anteroom: %s %s; it was left alone", shown(e.Key), m[1])
		if hint := kindHint[m[1]]; hint != "" {
			text += " (" + hint + ")"
		} else if isString(e) {
			text += " (a lock of redsync, redislock or rueidislock? See docs/migrating.md)"
		}
		return text
	}
	return strings.Replace(text, strings.TrimPrefix(anteroom.ErrConfig.Error(), "anteroom: ")+": ", "", 1)
}

// Unwrap returns the library's error.
func (p plain) Unwrap() error { return p.error }

// holder is what the field of a lock says about its holder.
type holder struct {
	Field  string  `json:"holder"` // as in Redis
	Client *string `json:"client"` // nil for a holder of another kind
	Host   *string `json:"host"`   // nil if the client id has another form; so is Pid
	Pid    *int    `json:"pid"`
	Count  int64   `json:"count,omitempty"`
	Note   string  `json:"note,omitempty"`

	kept bool // released, and kept by MinHold
}

// ownID matches the client ids that the library generates: from host and process id, or from the name that the
// program has set.
var ownID = regexp.MustCompile(`^(?:(.+)-([0-9]+)-|.+\.)[0-9a-f]{12}$`)

// keptSuffix ends the field that a release with MinHold leaves (docs/internals/protocol.md §4).
const keptSuffix = ":kept"

// holderOf parses a field, or the holder in a release message, which after a forced release is only the client id of
// who forced it.
func holderOf(field string) holder {
	h := holder{Field: field}
	name, kept := strings.CutSuffix(field, keptSuffix)
	id, _, ours := lettucecompat.ParseField(name)
	if !ours {
		id, ours = field, ownID.MatchString(field)
	}
	if !ours {
		return h
	}
	h.Client, h.kept = &id, kept
	if m := ownID.FindStringSubmatch(id); m != nil {
		if pid, err := strconv.Atoi(m[2]); err == nil {
			h.Host, h.Pid = &m[1], &pid
		}
	}
	return h
}

// holdersOf parses all fields of a lock.
func holdersOf(info anteroom.Info) []holder {
	holders := []holder{}
	for _, f := range info.Holders {
		h := holderOf(f.Field)
		h.Count, h.Note = f.Count, f.Note
		holders = append(holders, h)
	}
	return holders
}

// where returns host and process id for display.
func (h holder) where() (host, pid string) {
	host, pid = "-", "-"
	if h.Host != nil {
		host, pid = shown(*h.Host), strconv.Itoa(*h.Pid)
	}
	return host, pid
}
