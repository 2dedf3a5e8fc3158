package lettucecompat_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// A batch of renewals is one command, and so is a question about as many fields: a server
// sees 4 for a thousand locks. What the client allocates for each is bounded.
func TestBatch_IsOneCommand(t *testing.T) {
	rdb := onReal(t, nil).raw
	c := newClient(t, rdb)
	const size = 256
	var renewals []lettucecompat.Renewal
	var queries []lettucecompat.Query
	for i := range uint64(size) {
		key, field := "k"+strconv.FormatUint(i, 10), me(i)
		want(t, "acquire", c.Do(ctx, asks(key, i)).Outcome, ok)
		renewals = append(renewals, lettucecompat.Renewal{Key: key, Field: field, Lease: time.Minute})
		queries = append(queries, lettucecompat.Query{Key: key, Field: field})
	}
	renew := func() { want(t, "renew", c.Renew(ctx, renewals, 0)[size-1].Outcome, ok) }
	ask := func() { want(t, "status", c.Status(ctx, queries, 0)[size-1].Outcome, ok) }
	renew() // the script is loaded
	ask()
	scripts := func() string {
		_, after, _ := strings.Cut(rdb.Info(ctx, "commandstats").Val(), "cmdstat_evalsha:calls=")
		calls, _, _ := strings.Cut(after, ",")
		return calls
	}
	before, _ := strconv.Atoi(scripts())
	renew()
	ask()
	after, _ := strconv.Atoi(scripts())
	want(t, "script calls", after-before, 2)
	for name, f := range map[string]func(){"renewal": renew, "question": ask} {
		if each := testing.AllocsPerRun(5, f) / size; each > 5 {
			t.Errorf("%.1f allocations for each %s, want at most 5", each, name)
		} else {
			t.Logf("%.1f allocations for each %s", each, name)
		}
	}
}
