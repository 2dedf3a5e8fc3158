package lettucecompat_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// opened opens a URL, or ends the test. The client is closed with the test.
func opened(t *testing.T, url string, opt lettucecompat.Options) redis.UniversalClient {
	t.Helper()
	client, err := lettucecompat.Open(url, opt)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestOpen_OneServer(t *testing.T) {
	t.Parallel()
	for url, expected := range map[string]string{
		"redis://127.0.0.1":               "tcp 127.0.0.1:6379  0 false",
		"redis://:pw@there:7/3":           "tcp there:7 :pw 3 false",
		"rediss://u:p%2F%40@here:1":       "tcp here:1 u:p/@ 0 true",
		"rediss://u:p%2F%40@[::1]?db=2":   "tcp [::1]:6379 u:p/@ 2 true",
		"unix://u:p@/run/redis.sock?db=2": "unix /run/redis.sock u:p 2 false",
	} {
		o := opened(t, url, lettucecompat.Options{}).(*redis.Client).Options()
		who := ""
		if o.Password != "" {
			who = o.Username + ":" + o.Password
		}
		want(t, url, fmt.Sprint(o.Network, " ", o.Addr, " ", who, " ", o.DB, " ", o.TLSConfig != nil), expected)
	}
}

// TestOpen_Settings: the same settings in every form, which cost a Client nothing; what the
// URL says of the pool and the times wins.
func TestOpen_Settings(t *testing.T) {
	t.Parallel()
	cpus := runtime.GOMAXPROCS(0)
	for _, form := range []string{"redis://h", "redis+sentinel://h/mine", "redis+cluster://h"} {
		for _, c := range []struct {
			query string
			opt   lettucecompat.Options
			pool  int
			read  time.Duration
			costs int // of a cluster
			alone int // of one server
		}{
			{"", lettucecompat.Options{}, 32, 2 * time.Second, 0, 0},
			{"", lettucecompat.Options{MaxInFlight: 100, CommandTimeout: 5 * time.Second}, 116, 10 * time.Second, 0, 0},
			{"", lettucecompat.Options{MaxInFlight: 1, CommandTimeout: 10 * time.Millisecond}, 10, 2 * time.Second, 0, 0},
			{"?pool_size=7&read_timeout=300ms", lettucecompat.Options{}, 7, 300 * time.Millisecond, 1, 1},
			{"?max_active_conns=31", lettucecompat.Options{}, 32, 2 * time.Second, 1, 0},
		} {
			client := opened(t, form+c.query, c.opt)
			var got string
			least, expected := 10*cpus, c.alone
			switch r := client.(type) {
			case *redis.Client:
				o := r.Options()
				got = fmt.Sprint(o.ContextTimeoutEnabled, o.DisableIdentity, o.DialerRetries, o.MaxRetries, o.PoolSize, o.ReadTimeout, o.MaintNotificationsConfig.Mode)
			case *redis.ClusterClient:
				o := r.Options()
				least, expected = 5*cpus, c.costs
				got = fmt.Sprint(o.ContextTimeoutEnabled, o.DisableIdentity, o.DialerRetries, max(o.MaxRetries, 0), o.PoolSize, o.ReadTimeout, o.MaintNotificationsConfig.Mode)
			}
			pool := c.pool
			if c.query == "" {
				pool = max(pool, least)
			}
			want(t, form+c.query, got, fmt.Sprint(true, true, 1, 0, pool, c.read, maintnotifications.ModeDisabled))
			c.opt.ClientID = "me"
			lc, err := lettucecompat.New(client, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			if costs := lc.Costs(true); len(costs) != expected {
				t.Errorf("%s: %q", form+c.query, costs)
			}
			lc.Close()
		}
	}
}

// TestCosts: what a client of the user's own costs, in words that say what to set. One for one server sends only what waits for replicas.
func TestCosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rdb      redis.UniversalClient
		replicas bool
		words    []string
	}{
		{redis.NewClient(&redis.Options{PoolSize: 1}), false, nil},
		{redis.NewClient(&redis.Options{PoolSize: 8, ContextTimeoutEnabled: true}), true, nil},
		{redis.NewClient(&redis.Options{PoolSize: 7, ContextTimeoutEnabled: true}), true, []string{"set PoolSize on the client to 8 or more"}},
		{redis.NewClient(&redis.Options{PoolSize: 8, ReadTimeout: 7 * time.Second}), true, []string{"its connection for up to 7s"}},
		{redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 24, ContextTimeoutEnabled: true}), false, nil},
		{redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 23, ContextTimeoutEnabled: true}), false, []string{"set PoolSize on the client to 24 or more"}},
		{redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 31, ContextTimeoutEnabled: true}), true, []string{"set PoolSize on the client to 32 or more"}},
		{redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 24, ReadTimeout: 7 * time.Second}), false, []string{"its connection for up to 7s"}},
		{redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 1}), false, []string{"set ContextTimeoutEnabled ", "set PoolSize "}},
		{struct{ redis.UniversalClient }{redis.NewClient(&redis.Options{})}, true, nil},
	} {
		t.Cleanup(func() { _ = c.rdb.Close() })
		costs := newClient(t, c.rdb).Costs(c.replicas)
		if len(costs) != len(c.words) {
			t.Errorf("%q, want %q", costs, c.words)
			continue
		}
		for i, words := range c.words {
			if !strings.Contains(costs[i], words) {
				t.Errorf("%q, want %q", costs[i], words)
			}
		}
	}
}

// TestOpen_Files: what is wrong with the certificates shows immediately, with the option's name.
func TestOpen_Files(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"rediss://h", "rediss+sentinel://h/mine", "rediss+cluster://h"} {
		for query, words := range map[string]string{
			"?ca_file=/no/such":                          "ca_file: open /no/such",
			"?ca_file=" + empty:                          "ca_file holds no certificate",
			"?cert_file=/no/such":                        "belong together",
			"?key_file=/no/such":                         "belong together",
			"?cert_file=/no/such&key_file=/no/x":         "cert_file and key_file: open /no/such",
			"?cert_file=" + empty + "&key_file=" + empty: "cert_file and key_file: tls",
		} {
			for _, url := range []string{form + query, strings.Replace(form, "rediss", "redis", 1) + query} {
				if !strings.HasPrefix(url, "rediss") {
					words = "must begin with rediss"
				}
				if _, err := lettucecompat.Open(url, lettucecompat.Options{}); err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("%s: %v", url, err)
				}
			}
		}
	}
}

func TestOpen_Sentinels(t *testing.T) {
	t.Parallel()
	o, err := lettucecompat.SentinelOptions("redis", "u:p%3F@a,b:7,[::1]/mine/4?sentinel_password=sp&sentinel_username=su&dial_timeout=2s")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a:26379", "b:7", "[::1]:26379"}
	if !slices.Equal(o.SentinelAddrs, want) || o.MasterName != "mine" || o.DB != 4 || o.DialTimeout.Seconds() != 2 ||
		o.Username != "u" || o.Password != "p?" || o.SentinelUsername != "su" || o.SentinelPassword != "sp" || o.TLSConfig != nil {
		t.Errorf("%+v", o)
	}
	o, err = lettucecompat.SentinelOptions("rediss", "a/mine?skip_verify=true")
	if err != nil || o.Username+o.Password+o.SentinelUsername+o.SentinelPassword != "" || o.DB != 0 ||
		o.TLSConfig == nil || o.TLSConfig.ServerName != "" || !o.TLSConfig.InsecureSkipVerify {
		t.Errorf("%v, %+v", err, o)
	}
}

func TestOpen_Cluster(t *testing.T) {
	t.Parallel()
	o, err := lettucecompat.ClusterOptions("redis", "u:p@a,b:7?max_redirects=5")
	if err != nil || !slices.Equal(o.Addrs, []string{"a:6379", "b:7"}) || o.Username != "u" || o.Password != "p" ||
		o.MaxRedirects != 5 || o.TLSConfig != nil {
		t.Errorf("%v, %+v", err, o)
	}
	o, err = lettucecompat.ClusterOptions("rediss", "a,b?skip_verify=1")
	if err != nil || o.TLSConfig == nil || !o.TLSConfig.InsecureSkipVerify || o.TLSConfig.ServerName != "" {
		t.Errorf("%v, %+v", err, o)
	}
}

// Every option of every form is checked, and no client is made, let alone panics, of what makes no sense.
func TestOpen_OptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"redis://h", "redis+sentinel://h,i/mine", "redis+cluster://h,i"} {
		for query, words := range map[string]string{
			"pool_size=-5":             "pool_size is not a number from 1 to 10000",
			"pool_size=0":              "pool_size is not a number from 1 to 10000",
			"min_idle_conns=-1":        "min_idle_conns is not",
			"max_active_conns=1e6":     "max_active_conns is not",
			"protocol=9":               "protocol is not a number from 2 to 3",
			"read_timeout=-1":          "read_timeout is not a time from 0 to 24h0m0s",
			"dial_timeout=86401":       "dial_timeout is not",
			"pool_timeout=25h":         "pool_timeout is not",
			"write_timeout=1s%0A":      "write_timeout is not",
			"no_such=1":                "unexpected option: no_such",
			"pool_size=3&pool_size=-1": "pool_size is not",
		} {
			_, err := lettucecompat.Open(form+"?"+query, lettucecompat.Options{})
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s?%s: %v", form, query, err)
			}
		}
	}
	for url, words := range map[string]string{
		"redis://h/-1":                  "invalid database number",
		"redis://h?db=-4":               "db is not a number from 0",
		"unix://h/s?db=-4":              "db is not a number from 0",
		"redis+sentinel://h/mine/-1":    "invalid database number",
		"redis+sentinel://h/mine?db=-4": "db is not a number from 0",
		"redis://h:6379/0\n":            "ends with white space",
		" redis://u:hunter2@h":          "begins or ends with white space",
	} {
		_, err := lettucecompat.Open(url, lettucecompat.Options{})
		if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// No error repeats a password, wherever in the URL it has landed.
func TestOpen_ErrorsWithoutPasswords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, words string }{
		{"http://u:hunter2@host", "must begin with"},
		{"redis:hunter2", "must begin with"},
		{"redis+tls://u:hunter2@host", "must begin with"},
		{"redis://u:hunter2@host:port", "not a URL such as"},
		{"redis://u:hunter2/@host", "not a URL such as"},
		{"redis://u:pa?hunter2&x@host", "%3F"},
		{"redis://u:pa#hunter2@host", "%23"},
		{"redis://u:hunter2@host/first", `invalid database number: "first"`},
		{"redis://u:hunter2@host?no_such=1", "unexpected option: no_such"},
		{"redis+sentinel://u:hunter2@a,b", "master-name"},
		{"redis+sentinel://u:hunter2@a,,b/mine", "one of the hosts"},
		{"redis+sentinel://u:hunter2@a,b/mine?sentinel_password=a&hunter2", "not a URL such as"},
		{"redis+sentinel://u:hunter2@a,b/mine?addr=c", "option addr"},
		{"redis+cluster://u:hunter2@a,b/1", "no databases"},
		{"redis+cluster://u:hunter2@a,b?read_only=true", "option read_only"},
		{"redis+cluster://u:hunter2@a,b?skip_verify=maybe", "skip_verify is"},
		{"redis+cluster://u:hunter2@a,b:x", "one of the hosts"},
	} {
		_, err := lettucecompat.Open(c.url, lettucecompat.Options{})
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is shown: %v", c.url, err)
		}
	}
}
