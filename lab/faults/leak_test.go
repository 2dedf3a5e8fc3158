package faults_test

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
)

// fencePrefix begins the keys of fencing records, docs/internals/protocol.md §3.
const fencePrefix = "anteroom:fence:"

// left says, in the words of the table, what Redis has of the lock.
func (r *rig) left() string {
	kind, err := r.check.Type(bg, lockKey).Result()
	check(err)
	switch kind {
	case "none":
		return "nothing"
	case "hash":
		fields, err := r.check.HKeys(bg, lockKey).Result()
		check(err)
		var owners []string
		for _, f := range fields {
			if f == ":" { // of an RWMutex, and no owner
				continue
			}
			owner, _, _ := strings.Cut(f, ".") // followed by the run of the process, and the grant
			owners = append(owners, "the "+owner+"'s lock")
		}
		return strings.Join(owners, " and ")
	}
	return "a " + kind
}

// tidy returns what remains in Redis when every lease is over: only fencing records, and those only where they
// belong.
func (r *rig) tidy() string {
	var extra []string
	left := "nothing"
	for it := r.check.Scan(bg, 0, "*", 0).Iterator(); it.Next(bg); {
		key := it.Val()
		if strings.HasPrefix(key, fencePrefix) && r.setup.Fencing {
			left = "the fencing record"
			continue
		}
		ttl, err := r.check.PTTL(bg, key).Result()
		check(err)
		extra = append(extra, fmt.Sprintf("%s, TTL %v", key, ttl))
	}
	if len(extra) > 0 {
		r.t.Errorf("I4: left in Redis: %v", extra)
	}
	return left
}

// nothingLives waits until both Managers have forgotten every key.
func (r *rig) nothingLives() {
	for _, a := range []*agent{r.victim, r.rival} {
		eventually(a.who+" has no live key", func() bool { live, _ := a.state(); return live == 0 })
	}
}

// close ends both parties and checks what they leave: subscriptions, connections, and in the victim's own process
// goroutines.
func (r *rig) close() {
	for _, a := range []*agent{r.victim, r.rival} {
		if n := a.ask(doClose); n.Got != "nil" {
			r.t.Errorf("%s: Close: %s", a.who, n.Got)
		}
	}
	r.noSubscriptions(pace.Hang)
	for _, a := range []*agent{r.victim, r.rival} {
		a.ask(doQuit)
	}
	if r.own != nil {
		if err := r.own.end(); err != nil {
			r.t.Errorf("I5: the victim's process: %v", err)
		}
	}
	r.noConnections(pace.Hang)
}

// noSubscriptions: the Managers are closed, their clients are not.
func (r *rig) noSubscriptions(patience time.Duration) {
	r.await(patience, "no connection subscribes", func() string {
		list, err := r.check.Do(bg, "client", "list", "type", "pubsub").Text()
		check(err)
		return list
	})
	r.await(patience, "no subscription is left", func() string {
		channels, err := r.check.PubSubChannels(bg, "*").Result()
		check(err)
		if len(channels) > 0 {
			return fmt.Sprint(channels)
		}
		return ""
	})
}

// noConnections: the clients are closed too.
func (r *rig) noConnections(patience time.Duration) {
	r.await(patience, "no connection is left but the checker's", func() string {
		list, err := r.check.ClientList(bg).Result()
		check(err)
		var others []string
		for line := range strings.Lines(list) {
			if !strings.Contains(line, " name="+checkerName+" ") {
				others = append(others, strings.TrimSpace(line))
			}
		}
		return strings.Join(others, "\n")
	})
}

// await waits until found returns nothing; what it still returns in the end has leaked. The other end of a closed
// connection takes a moment to notice.
func (r *rig) await(patience time.Duration, what string, found func() string) {
	var extra string
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if extra = found(); extra == "" {
			return
		}
		if time.Now().After(end) {
			r.t.Errorf("I5: %s: %s", what, extra)
			return
		}
	}
}

// checkerName marks the checker's connections.
const checkerName = "checker"

func asChecker(o *redis.Options) {
	o.ClientName = checkerName
	o.ReadTimeout = pace.Hang // it also queries while the server is stopped
}

// label is the profiler label that every goroutine of a cell has: goroutines inherit it.
const label = "anteroom-cell"

// labelled returns the stacks of the goroutines of one cell.
func labelled(cell string) string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return err.Error()
	}
	var found []string
	for _, group := range strings.Split(profile.String(), "\n\n") {
		if strings.Contains(group, fmt.Sprintf("%q:%q", label, cell)) {
			found = append(found, group)
		}
	}
	return strings.Join(found, "\n\n")
}
