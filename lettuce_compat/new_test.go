package lettucecompat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	var typedNil *redis.Client
	endless := redis.NewClient(&redis.Options{ReadTimeout: -1})
	defer endless.Close()
	deaf := redis.NewClient(&redis.Options{ReadTimeout: -2, ContextTimeoutEnabled: true}) // sets no deadlines, whatever the context says
	defer deaf.Close()
	deafCluster := redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: -2, ContextTimeoutEnabled: true})
	defer deafCluster.Close()
	for name, tc := range map[string]struct {
		rdb   lettucecompat.Redis
		opt   lettucecompat.Options
		names string // what the error must name
	}{
		"nil":              {nil, lettucecompat.Options{ClientID: "me"}, "nil"},
		"typed nil":        {typedNil, lettucecompat.Options{ClientID: "me"}, "nil"},
		"no read timeout":  {endless, lettucecompat.Options{ClientID: "me"}, "ReadTimeout"},
		"no deadlines":     {deaf, lettucecompat.Options{ClientID: "me"}, "ReadTimeout"},
		"none, Cluster":    {deafCluster, lettucecompat.Options{ClientID: "me"}, "ReadTimeout"},
		"no id":            {b.rdb, lettucecompat.Options{}, "ClientID"},
		"brace in id":      {b.rdb, lettucecompat.Options{ClientID: "a{b"}, "ClientID"},
		"colon in id":      {b.rdb, lettucecompat.Options{ClientID: "a:b"}, "ClientID"},
		"no UUID":          {b.rdb, lettucecompat.Options{ClientID: "me", Dialect: lettucecompat.Redisson}, "Dialect.NewClientID"},
		"long id":          {b.rdb, lettucecompat.Options{ClientID: strings.Repeat("x", 129)}, "ClientID"},
		"negative timeout": {b.rdb, lettucecompat.Options{ClientID: "me", CommandTimeout: -1}, "CommandTimeout"},
		"negative flights": {b.rdb, lettucecompat.Options{ClientID: "me", MaxInFlight: -1}, "MaxInFlight"},
	} {
		if _, err := lettucecompat.New(tc.rdb, tc.opt); err == nil || !strings.Contains(err.Error(), tc.names) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b.net.Dials() != 0 {
		t.Error("New did I/O")
	}
}

// TestCosts_OfNoWriteDeadline: go-redis sets no deadline for what it writes, so nothing bounds how long that takes.
func TestCosts_OfNoWriteDeadline(t *testing.T) {
	t.Parallel()
	for timeout, costs := range map[time.Duration]int{0: 0, -1: 0, -2: 1} {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{WriteTimeout: timeout, ContextTimeoutEnabled: true, PoolSize: 100})
		defer rdb.Close()
		want(t, fmt.Sprint("WriteTimeout ", int64(timeout)), len(newClient(t, rdb).Costs(false)), costs)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	id, other := lettucecompat.NewClientID(""), lettucecompat.NewClientID("")
	if id == other || strings.ContainsAny(id, "{}:") || !strings.Contains(id, fmt.Sprintf("-%d-", os.Getpid())) {
		t.Fatalf("client ids %q, %q", id, other)
	}
	for _, number := range []uint64{lettucecompat.FirstNumber, first, lettucecompat.LastNumber} {
		client, n, valid := lettucecompat.ParseField(lettucecompat.NewField(id, number))
		want(t, "parsed", client == id && n == number && valid, true)
	}
	for _, field := range []string{
		"", ":", "me", "me:", ":1700000000000000", "me:x700000000000000", "me:0700000000000000", "me:+170000000000000", "me:-170000000000000", me(1) + ":kept",
		"a:b:1700000000000000", "a b:1700000000000000", "me:18446744073709551616",
		"me:999999999999999", "me:10000000000000000", javaUUID + ":57", // another number of digits: a thread of a foreign client
	} {
		if _, _, valid := lettucecompat.ParseField(field); valid {
			t.Errorf("%q was taken for a field of ours", field)
		}
	}
}

type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestClassify(t *testing.T) {
	t.Parallel()
	for class, errs := range map[lettucecompat.Class][]error{
		lettucecompat.ClassNone: {nil},
		lettucecompat.ClassPermanent: {
			answer("WRONGTYPE Operation against a key"), answer("NOPERM this user has no permissions"), answer("NOAUTH Authentication required."),
			answer("WRONGPASS invalid username-password pair"), answer("ERR unknown command"), answer("ERR invalid password"),
			answer("ERR auth permission deny"),
			answer("ERR Error running script (call to f_0): @user_script:1: WRONGTYPE Operation"), answer("ANTEROOM the field is there"),
		},
		lettucecompat.ClassTransient: {
			answer("LOADING Redis is loading"), answer("READONLY You can't write"), answer("MASTERDOWN Link"), answer("CLUSTERDOWN The cluster is down"),
			answer("TRYAGAIN Multiple keys"), answer("OOM command not allowed"), answer("BUSY Redis is busy"), answer("MISCONF Redis is configured"),
			answer("NOREPLICAS Not enough"), answer("MOVED 1 a:1"), answer("ASK 1 a:1"), answer("ERR max number of clients reached"),
			answer("ERR no server connection avaliable"), answer("no upstream host"),
			answer("ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica."),
			fmt.Errorf("wrapped: %w", answer("LOADING x")),
		},
		lettucecompat.ClassUnreachable: {
			&net.OpError{Op: "dial", Err: errors.New("refused")}, redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed, lettucecompat.ErrClosed,
		},
		lettucecompat.ClassUnknown: {
			io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, context.Canceled, context.DeadlineExceeded, lettucecompat.ErrTimeout,
			&net.OpError{Op: "read", Err: errors.New("reset")}, &net.OpError{Op: "write", Err: errors.New("broken pipe")}, redis.Nil, errors.New("anything"),
			answer("ERR server connection close"), answer("upstream failure"), // by a proxy, after it was sent
		},
	} {
		for _, err := range errs {
			if got := lettucecompat.Classify(err); got != class {
				t.Errorf("%v is %v, want %v", err, got, class)
			}
		}
	}
}

// The texts are those that Redis 5.0.6 and 6.0.16 gave to the scripts of this package: read-only
// replica, full, unable to save, without rights. Line and digest are those of that day.
func TestClassify_AnswersOfServersBefore7(t *testing.T) {
	t.Parallel()
	const raised = "ERR Error running script (call to f_a0b7cdd3f662ec7a6a44810517631c144958ea44): @user_script:96: "
	for text, class := range map[string]lettucecompat.Class{
		"@user_script: 42: -READONLY You can't write against a read only replica.  ":                                             lettucecompat.ClassTransient, // acquire
		"@user_script: 21: -READONLY You can't write against a read only replica.\r\n":                                           lettucecompat.ClassTransient, // an entry of renew
		"@user_script: 69: -OOM command not allowed when used memory > 'maxmemory'.  ":                                           lettucecompat.ClassTransient,
		"@user_script: 42: -MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.": lettucecompat.ClassTransient,
		"@user_script: 42: -NOREPLICAS Not enough good replicas to write.":                                                       lettucecompat.ClassTransient,
		raised + "@user_script: 96: -READONLY You can't write against a read only replica.":                                      lettucecompat.ClassTransient,
		"MISCONF Redis is configured to save RDB snapshots":                                                                      lettucecompat.ClassTransient,
		"CLUSTERDOWN Hash slot not served":                                                                                       lettucecompat.ClassTransient,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                                                lettucecompat.ClassTransient,
		"LOADING Redis is loading the dataset in memory":                                                                         lettucecompat.ClassTransient,
		raised + "@user_script: 96: The user executing the script can't run this command or subcommand":                          lettucecompat.ClassPermanent,
		"@user_script: 21: The user executing the script can't run this command or subcommand":                                   lettucecompat.ClassPermanent,
		"@user_script: 21: -WRONGTYPE Operation against a key holding the wrong kind of value":                                   lettucecompat.ClassPermanent,
		"NOPERM this user has no permissions to access one of the keys used as arguments":                                        lettucecompat.ClassPermanent,
		"WRONGTYPE the key holds a value of type string, not a lock":                                                             lettucecompat.ClassPermanent,
		"@user_script: 21: something -READONLY and more":                                                                         lettucecompat.ClassPermanent, // no code of the answer
		"ERR unknown user 'x: -READONLY '":                                                                                       lettucecompat.ClassPermanent,
		"@user_script":                                                                                                           lettucecompat.ClassPermanent,
	} {
		if got := lettucecompat.Classify(answer(text)); got != class {
			t.Errorf("%q is %v, want %v", text, got, class)
		}
	}
}

// TestTraceTravels: the values of the caller's context reach the client's hooks, its
// end does not.
func TestTraceTravels(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	type key struct{}
	seen := make(chan any, 10)
	b.rdb.AddHook(traceHook{func(hctx context.Context) { seen <- hctx.Value(key{}) }})
	c := b.client(t)
	cctx, cancel := context.WithTimeout(context.WithValue(ctx, key{}, "trace"), time.Hour)
	defer cancel()
	want(t, "acquire", c.Do(cctx, asks("k", 1)).Outcome, ok)
	want(t, "trace", <-seen, any("trace"))
}

type traceHook struct{ see func(context.Context) }

func (h traceHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h traceHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			h.see(ctx)
		}
		return next(ctx, cmd)
	}
}

func (h traceHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
