package lettucecompat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestDiagnose_WhoSaysIt: behind Sentinels two kinds of servers answer, and the text says which did. (What is found out
// by looking is tested with sync.Open.)
func TestDiagnose_WhoSaysIt(t *testing.T) {
	t.Parallel()
	const unreachable = "redis: all sentinels specified in configuration are unreachable: %w"
	ended, end := context.WithCancel(ctx)
	end()
	for _, c := range []struct {
		url  string
		err  error
		text string
	}{
		{"redis://:hunter2@a:1/3", answer("NOAUTH Authentication required."), "a:1 says: NOAUTH Authentication required"},
		{"redis+cluster://:hunter2@a:1,b:2", answer("CLUSTERDOWN Hash slot not served"), "a:1, b:2 says: CLUSTERDOWN Hash slot not served"},
		{"redis+sentinel://:hunter2@a:1/mine", answer("NOAUTH Authentication required."), `the master of "mine" says: NOAUTH Authentication required`},
		{"redis+sentinel://:hunter2@a:1/mine", io.EOF, `the master of "mine": EOF`},
		{"redis+sentinel://:hunter2@a:1/mine", fmt.Errorf(unreachable, answer("NOAUTH Authentication required.")), "a:1 says: NOAUTH Authentication required"},
		{"redis+sentinel://:hunter2@a:1,b:2/mine", fmt.Errorf(unreachable, errors.Join(redis.Nil, io.EOF)), `no Sentinel at a:1, b:2 knows "mine"`},
		{"redis+sentinel://:hunter2@a:1/mine", fmt.Errorf(unreachable, answer("ERR unknown command 'sentinel', with args beginning with: 'get-master-addr-by-name' 'mine'")), "a:1 is no Sentinel: for one server the URL is redis://a:1"},
		{"redis+sentinel://:hunter2@a:1/mine", answer("ERR unknown command 'evalsha', with args beginning with: "), `the master of "mine" runs no scripts (EVALSHA), which locks need`},
		{"redis://:hunter2@a:1", answer("ERR \x1b[31mred\x1b[0m. And more"), "a:1 says: ERR \ufffd[31mred\ufffd[0m"},
	} {
		guess, why := lettucecompat.Diagnose(ended, c.url, c.err)
		want(t, c.url, why.Error(), c.text)
		want(t, "its cause", errors.Is(why, c.err), true)
		want(t, "permanent", lettucecompat.Permanent(why), lettucecompat.Permanent(c.err) || errors.Is(c.err, redis.Nil))
		if text := c.err.Error(); guess != "" && text != "EOF" {
			t.Errorf("%s: a guess, %q, beside an answer", c.url, guess)
		}
	}
}
