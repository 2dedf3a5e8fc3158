package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	anteroom "github.com/anteroom/anteroom/sync"
)

// listOptions are the flags of `anteroom list`.
type listOptions struct {
	json            bool
	most            int
	length, timeout time.Duration
}

// listCommand returns the command `anteroom list`.
func listCommand() *cobra.Command {
	o := listOptions{length: 30 * time.Second}
	cmd := &cobra.Command{
		Use:   "list [flags] [PATTERN]",
		Short: "Show the locks that are held",
		Long: `Searches the keys that match PATTERN and shows those that are locks, sorted by key, as
status does. PATTERN is a pattern of Redis: * matches any text, ? one character, [ab] one of
these, and a backslash quotes the next character. Without a PATTERN every key matches. On a
Cluster it searches all masters. It changes nothing, and never blocks the server: it
uses SCAN, a thousand keys at a time.

Redis does not mark locks. A key counts as one if it is a hash whose fields all have the
form of a holder: a client id or a UUID, a colon, a number; or for an RWMutex or a Semaphore
of a client id, beside one that describes the lock. A hash with one field and a time to live
also counts if the field is another name that ends in a colon or a dash and a number. So
does a string with a time to live in the form of a lock of redsync, redislock or
rueidislock. Locks of other forms are missing; status shows them. So may be a lock that is
acquired or released meanwhile. Keys that the Redis user may not read are counted on
standard error.

The exit status is 0 if the list is complete, even if it is empty, and 1 if --limit or --for
has cut it short. It is 64 for a wrong command line, 69 if Redis does not answer, 77 if
Redis refuses.`,
		Example: `  anteroom list 'order:*'
  anteroom list --json | jq -r '.holders[].host' | sort | uniq -c`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runList(cmd, o, append(args, "*")[0])
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one line of JSON for each lock")
	cmd.Flags().IntVarP(&o.most, "limit", "n", 1000, "show so many locks at most")
	durationVar(cmd, &o.length, "for", "", "longest search")
	addTimeoutFlag(cmd, &o.timeout)
	return cmd
}

// Bounds of one step of a list.
const (
	scanCount = 1000 // keys that SCAN visits, in less than a millisecond
	askCount  = 64   // keys that are asked about together
	maxFields = 64   // of a Mutex; Inspect refuses more
)

// unitsHeader is the field that an RWMutex or a Semaphore has, however many hold it.
const unitsHeader = ":"

// runList prints what it has found, even if it could not finish.
func runList(cmd *cobra.Command, o listOptions, pattern string) error {
	switch {
	case o.most <= 0:
		return usageError("--limit is %d; it must be positive", o.most)
	case o.length == 0:
		return usageError("--for is 0; it must be longer")
	}
	op, err := newOperator(cmd, o.timeout)
	if err != nil {
		return err
	}
	defer op.close()
	ctx, stop := context.WithTimeout(cmd.Context(), o.length)
	defer stop()
	l := &lister{operator: op, listOptions: o, stop: stop, found: map[string]lockStatus{}}
	err = l.scanAll(ctx, pattern)
	var all []lockStatus
	for _, key := range slices.Sorted(maps.Keys(l.found)) {
		all = append(all, l.found[key])
	}
	switch {
	case l.refused > 0 && !l.allowed && err == nil:
		err = unanswered(l.refusal)
	case l.refused > 0:
		fmt.Fprintf(cmd.ErrOrStderr(), "anteroom: %d keys were left out, because the Redis user may not read them\n", l.refused)
	}
	cut := ""
	switch {
	case l.cut:
		cut = fmt.Sprintf("there are more than %d locks; --limit shows more", o.most)
	case err != nil && ctx.Err() != nil:
		cut = fmt.Sprintf("not all keys were visited within %v; --for gives it more time", o.length)
	}
	if cut != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "anteroom: the list is incomplete: %s\n", cut)
		err = &exitError{status: exitNone}
	}
	if len(all) == 0 && err == nil && !o.json {
		fmt.Fprintf(cmd.ErrOrStderr(), "anteroom: no locks match %s\n", shown(pattern))
	}
	return errors.Join(statusOptions{json: o.json}.print(cmd, all), err)
}

// lister collects the locks among the keys of all masters. Its memory is bounded by --limit.
type lister struct {
	*operator
	listOptions
	stop func() // ends the search

	mu    sync.Mutex // guards the fields below: one master's keys at a time
	found map[string]lockStatus
	cut   bool // there are more than --limit
	// refused counts the keys that the user may not read, and why. It is no error while there are others.
	refused int
	refusal error
	allowed bool
}

// scanAll searches the keys of every master.
func (l *lister) scanAll(ctx context.Context, pattern string) error {
	cluster, ok := l.rdb.(*redis.ClusterClient)
	if !ok {
		return l.scan(ctx, l.rdb, pattern)
	}
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		return l.scan(ctx, master, pattern)
	})
	if _, mapped := errors.AsType[*exitError](err); err != nil && !mapped {
		return unanswered(err) // the layout of the Cluster is not known
	}
	return err
}

// scan searches the keys of one server.
func (l *lister) scan(ctx context.Context, server redis.Cmdable, pattern string) error {
	for cursor := uint64(0); ; {
		asking, cancel := context.WithTimeout(ctx, l.timeout)
		keys, next, err := server.Scan(asking, cursor, pattern, scanCount).Result()
		cancel()
		if err != nil {
			return unanswered(err)
		}
		if err := l.inspect(ctx, keys); err != nil || next == 0 {
			return err
		}
		cursor = next
	}
}

// inspect adds the locks among keys to those found.
func (l *lister) inspect(ctx context.Context, keys []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	hashes, texts, err := l.candidates(ctx, keys)
	if err != nil {
		return unanswered(err)
	}
	locks, err := l.stringLocks(ctx, texts)
	if err != nil {
		return unanswered(err)
	}
	for key, s := range locks {
		if !l.add(key, s) {
			return nil
		}
	}
	for some := range slices.Chunk(hashes, askCount) {
		if err := l.ask(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// add adds a lock to those found, unless --limit is reached.
func (l *lister) add(key string, s lockStatus) bool {
	if len(l.found) == l.most {
		l.cut = true
		l.stop()
		return false
	}
	l.found[key] = s
	return true
}

// candidates returns the keys that are hashes with few fields or those of an RWMutex or a Semaphore, and the keys of
// strings that may be locks. SCAN may repeat a key: one that was found is left out.
func (l *lister) candidates(ctx context.Context, keys []string) (hashes, texts []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	type sizes struct{ fields, length *redis.IntCmd }
	all := map[string]sizes{}
	_, _ = l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for _, key := range keys {
			if _, known := l.found[key]; !known {
				all[key] = sizes{p.HLen(ctx, key), p.StrLen(ctx, key)}
			}
		}
		return nil
	})
	large := map[string]*redis.BoolCmd{}
	for key, size := range all {
		n, err := size.fields.Result()
		l.allowed = l.allowed || !forbiddenKey(err)
		switch {
		case redis.HasErrorPrefix(err, "WRONGTYPE"):
			if size.length.Err() == nil && maybeStringLock(size.length.Val()) {
				texts = append(texts, key)
			}
		case forbiddenKey(err):
			l.refused, l.refusal = l.refused+1, err
		case err != nil:
			return nil, nil, err
		case n > 0 && n <= maxFields:
			hashes = append(hashes, key)
		case n > 0:
			large[key] = nil
		}
	}
	_, _ = l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // nothing, most often
		for key := range large {
			large[key] = p.HExists(ctx, key, unitsHeader)
		}
		return nil
	})
	for key, header := range large {
		if header.Val() { // an error is that of a key that has just become something else
			hashes = append(hashes, key)
		}
	}
	return hashes, texts, nil
}

// forbiddenKey reports whether the Redis user may not touch a key. A command that it may not use at all is another matter.
func forbiddenKey(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(err.Error(), "access")
}

// ask inspects keys, all together, and adds the locks among them.
func (l *lister) ask(ctx context.Context, keys []string) error {
	infos, errs := make([]anteroom.Info, len(keys)), make([]error, len(keys))
	var asked sync.WaitGroup
	for i, key := range keys {
		asked.Go(func() { infos[i], errs[i] = l.m.Inspect(ctx, key) })
	}
	asked.Wait()
	for i, key := range keys {
		_, byServer := errors.AsType[redis.Error](errs[i])
		switch {
		case errors.Is(errs[i], anteroom.ErrConfig) && (!byServer || notLock.MatchString(errs[i].Error())):
			// No lock can have this name, such as that of a fencing record, or the key holds something else.
		case forbiddenKey(errs[i]):
			l.refused++
		case errs[i] != nil:
			return answered(errs[i])
		case !isLock(infos[i]):
		case !l.add(key, statusOf(key, infos[i], nil)):
			return nil
		}
	}
	return nil
}

var (
	// redisson matches the holders of Redisson, and ours in its dialect.
	redisson = regexp.MustCompile(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}:[0-9]+(?:` + keptSuffix + `)?$`)
	// numbered matches the holders of other clients that are recognized by a name and a number.
	numbered = regexp.MustCompile(`[^:-][:-][0-9]+$`)
)

// isLock reports whether what is at a key has the form of a lock. Counters and shopping baskets are hashes of names and
// numbers, too.
func isLock(info anteroom.Info) bool {
	certain := len(info.Holders) > 0
	for _, f := range info.Holders {
		h := holderOf(f.Field)
		certain = certain && f.Count > 0 && (h.Client != nil && ownID.MatchString(*h.Client) || redisson.MatchString(f.Field))
	}
	return certain || len(info.Holders) == 1 && info.Holders[0].Count > 0 && info.TTL >= 0 && numbered.MatchString(info.Holders[0].Field)
}
