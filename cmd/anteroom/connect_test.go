package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// connected runs a command line whose command only connects.
func connected(t *testing.T, args ...string) (redis.UniversalClient, error) {
	t.Helper()
	var client redis.UniversalClient
	root := &cobra.Command{Use: "anteroom", RunE: func(cmd *cobra.Command, _ []string) (err error) {
		client, err = connect(cmd)
		return err
	}, SilenceUsage: true, SilenceErrors: true}
	addRedisFlags(root)
	root.SetArgs(args)
	err := root.Execute()
	if client != nil {
		t.Cleanup(func() { _ = client.Close() })
	}
	return client, err
}

func TestConnect_OneServer(t *testing.T) {
	for _, c := range []struct {
		flag, variable, want string
	}{
		{"", "", "tcp 127.0.0.1:6379  0 false"},
		{"", "redis://:pw@there:7/3", "tcp there:7 :pw 3 false"},
		{"redis://here", "redis://there:7/3", "tcp here:6379  0 false"},
		{"rediss://u:p%2F%40@here:1", "", "tcp here:1 u:p/@ 0 true"},
		{"unix://u:p@/run/redis.sock?db=2", "", "unix /run/redis.sock u:p 2 false"},
	} {
		t.Setenv(redisVariable, c.variable)
		args := []string{"--redis", c.flag}
		if c.flag == "" {
			args = nil
		}
		client, err := connected(t, args...)
		if err != nil {
			t.Errorf("%q, %q: %v", c.flag, c.variable, err)
			continue
		}
		o := client.(*redis.Client).Options()
		who := ""
		if o.Password != "" {
			who = o.Username + ":" + o.Password
		}
		if got := fmt.Sprint(o.Network, " ", o.Addr, " ", who, " ", o.DB, " ", o.TLSConfig != nil); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.flag, c.variable, got, c.want)
		}
	}
}

func TestConnect_EveryFormHasItsClient(t *testing.T) {
	for url, want := range map[string]string{
		"redis+sentinel://a,b/mine":  "FailoverClient",
		"rediss+sentinel://a,b/mine": "FailoverClient",
		"redis+cluster://a,b":        "*redis.ClusterClient",
		"rediss+cluster://a,b":       "*redis.ClusterClient",
	} {
		client, err := connected(t, "--redis", url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		got := fmt.Sprintf("%T", client)
		if c, ok := client.(*redis.Client); ok {
			got = c.Options().Addr
		}
		if got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// An invalid URL is a usage error that says where the URL came from.
func TestConnect_AURLThatIsWrong(t *testing.T) {
	_, err := connected(t, "--redis", "redis://u:hunter2@host/first")
	if err == nil || err.Error() != `--redis: invalid database number: "first"` {
		t.Errorf("%v", err)
	}
	if code, say := status(err); code != exitUsage || !say {
		t.Errorf("exit status %d, said: %v", code, say)
	}
	t.Setenv(redisVariable, "nonsense")
	if _, err := connected(t); err == nil || !strings.Contains(err.Error(), redisVariable+": ") {
		t.Errorf("the variable: %v", err)
	}
}

func TestExitStatuses(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		say    bool
	}{
		{nil, 0, false},
		{errors.New("some"), exitFailed, true},
		{usageError("some"), exitUsage, true},
		{&exitError{status: 7}, 7, false},
		{fmt.Errorf("in: %w", &exitError{status: 9, err: errors.New("some")}), 9, true},
		{redisError(&anteroom.Error{Err: anteroom.ErrUnavailable}), exitUnavailable, true},
		{redisError(&anteroom.Error{Err: anteroom.ErrUnknown}), exitUnavailable, true},
		{redisError(&anteroom.Error{Err: anteroom.ErrConfig}), exitFailed, true},
	} {
		if code, say := status(c.err); code != c.status || say != c.say {
			t.Errorf("%v: %d, %v, want %d, %v", c.err, code, say, c.status, c.say)
		}
	}
}

// What cobra itself rejects is a usage error too.
func TestExitStatusOfAWrongCommandLine(t *testing.T) {
	t.Setenv(redisVariable, "redis://127.0.0.1:1") // which nobody asks
	for _, args := range [][]string{{"nonsense"}, {"--nonsense"}, {"watch", "--nonsense"}, {"watch", "a", "b"}} {
		var out, errs bytes.Buffer
		code := run(t.Context(), args, nil, &out, &errs)
		if code != exitUsage || out.Len() != 0 || !strings.HasSuffix(errs.String(), " --help\n") || strings.Contains(errs.String(), "refused") {
			t.Errorf("%v: exit status %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}

// The flags of TLS, or their variables, name the files with which a real server is reached; without them it is not.
func TestConnect_TLS(t *testing.T) {
	authority := testredis.NewAuthority(t)
	s := testredis.StartTLS(authority, true)
	ca, cert, key := authority.Files("client")
	address := "rediss://" + s.Addr()
	for _, c := range []struct {
		name        string
		environment bool
		url         string
		args        []string
		status      int
		words       string
	}{
		{"all three", false, address, []string{"--cacert", ca, "--cert", cert, "--key", key}, 0, ""},
		{"the variables", true, address, nil, 0, ""},
		{"a flag wins over a variable", true, address, []string{"--cacert", key}, exitUsage, "no certificate in PEM form"},
		{"a flag wins over the URL", false, address + "?ca_file=/nowhere&dial_timeout=7s", []string{"--cacert", ca, "--cert", cert, "--key", key}, 0, ""},
		{"no client certificate", false, address, []string{"--cacert", ca}, exitUnavailable, ""},
		{"no authority", false, address, []string{"--cert", cert, "--key", key}, exitUnavailable, "certificate signed by unknown authority"},
		{"a certificate without its key", false, address, []string{"--cert", cert}, exitUsage, "belong together"},
		{"no such file", false, address, []string{"--cacert", "/no/such&file"}, exitUsage, "open /no/such&file: "},
		{"no TLS", false, s.URL(), []string{"--cacert", ca}, exitUsage, "must begin with rediss"},
		{"no TLS, and variables that others need", true, testredis.Start(t).URL(), nil, 0, ""},
	} {
		for i, file := range []string{ca, cert, key} {
			if !c.environment {
				file = ""
			}
			t.Setenv(tlsFlags[i].variable, file)
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"status", "--redis", c.url, "k"}, c.args...), nil, &out, &errs)
		if code != c.status || !strings.Contains(errs.String(), c.words) {
			t.Errorf("%s: exit status %d, want %d with %q; it said %q", c.name, code, c.status, c.words, errs.String())
		}
	}
}

// Of a Redis that does not serve the tool says what the server says, or what it is.
func TestConnect_SaysWhyRedisDoesNotServe_Lab(t *testing.T) {
	full := testredis.Start(t, "--maxclients", "1")
	must(t, full.Client(t).Ping(t.Context()).Err()) // takes the only connection
	sentinel := testredis.StartSentinel(t)
	hosts, _, _ := strings.Cut(strings.TrimPrefix(sentinel.URL(), "redis+sentinel://"), "/")
	one, _, _ := strings.Cut(hosts, ",")
	for _, c := range []struct {
		name, url, words string
		status           int
	}{
		{"full", full.URL(), full.Addr() + " says: ERR max number of clients reached", exitUnavailable},
		{"a Sentinel", "redis://" + one, one + " is a Sentinel: the URL is redis+sentinel://" + one + "/name-of-the-master", exitRefused},
		{"another name", "redis+sentinel://" + hosts + "/typo", `knows "typo"`, exitUnavailable},
		{"TLS", "rediss://" + testredis.Start(t).Addr(), "does not speak TLS", exitUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"status", "--redis", c.url, "--timeout", "1s", "k"}, nil, &out, &errs)
			if code != c.status || strings.Count(errs.String(), c.words) != 1 {
				t.Errorf("exit status %d, want %d with %q; it said %q", code, c.status, c.words, errs.String())
			}
		})
	}
}
