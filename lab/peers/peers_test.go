package peers

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
)

func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m)
}

// peer is a library with tests of its own.
type peer struct {
	name, path string
	module     string            // with its version, where lab does not use it; "": Go itself
	files      *regexp.Regexp    // what is taken of it
	packages   string            // those with tests; "": that of path
	mode       string            // the tests' own sub-tests that are run, of several that differ by what Anteroom does not have
	fails      map[string]string // by test, and why
	either     string            // one of them that may pass
}

const (
	shorter    = "its lease is 5 ms, and Anteroom's shortest is 100 ms"
	noProclaim = "a leader's note stays as it is for its term"
)

var peers = []peer{
	{
		name: "redislock", path: "github.com/bsm/redislock", module: "github.com/bsm/redislock", files: regexp.MustCompile(`^go.mod$|^(retry|\w+_test)\.go$`),
		fails: map[string]string{
			"TestLock_Refresh_retry_failure": shorter,
			"TestLock_Refresh_expired":       shorter,
			"TestLock_Release_expired":       shorter,
			"TestObtain_custom_token":        "Anteroom has no token that a second caller may enter by",
		},
	},
	{
		name: "redsync", path: "github.com/go-redsync/redsync/v4", module: "github.com/go-redsync/redsync/v4", mode: "/^goredis_v9$",
		files: regexp.MustCompile(`^go.mod$|^(redsync|error|scripts|mutex_test|redsync_test)\.go$|^redis/`),
	},
	{
		name: "rueidislock", path: "rueidislock.test", module: "github.com/redis/rueidis", mode: "/^Tracking_Loop$",
		files: regexp.MustCompile(`^lock_test\.go$`), either: "TestLocker_WithContext_ExtendByClientSideCaching",
		fails: map[string]string{
			"TestLocker_WithContext_ExtendByClientSideCaching": "whoever cuts a lease short races with the renewal",
			"TestLocker_WithContext_MissingPeers":              "it reads rueidislock's queue",
			"TestLocker_WithContext_Cleanup":                   "it reads rueidislock's queue",
		},
	},
	{
		name: "etcd", either: "TestElectionWithAuthEnabled", path: "go.etcd.io/etcd/tests/v3", module: "go.etcd.io/etcd/tests/v3@v3.7.1", packages: "./integration/...",
		files: regexp.MustCompile(`^integration/(v3_election|clientv3/(concurrency/(example_)?(election|mutex|session)|experimental/recipes/v3_lock))_test\.go$`),
		fails: map[string]string{
			"TestElectionSessionRecampaign":               noProclaim,
			"TestElectionOnSessionRestart":                noProclaim,
			"TestElectionObserveFreshResponsesOnProclaim": noProclaim,
			"TestElectionWithAuthEnabled":                 "its second candidate's session may end with the first's",
		},
	},
	{
		// A module of that name may import Go's internal/testenv.
		name: "sync", path: "bootstrap/sync", files: regexp.MustCompile(`^(mutex|cond)_test\.go$`),
		fails: map[string]string{"TestMutexMisuse": "a wrong Unlock panics; that of sync.Mutex ends the program"},
	},
}

func TestPeers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:6379")
	if err != nil {
		testredis.CountSkip(t)
		t.Skipf("the peers' tests want this address: %v", err)
	}
	check(t, l.Close())
	testredis.Start(t, "--port", "6379")
	t.Run("all", func(t *testing.T) { // the server outlives them
		for _, p := range peers {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.test(t)
			})
		}
	})
}

// test runs the tests that must pass, and by itself each that must fail, since it may end the program.
func (p peer) test(t *testing.T) {
	dir := p.build(t)
	ended := regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\w+)`)
	passed, of := 0, 0
	binaries, err := filepath.Glob(filepath.Join(dir, "tests/*"))
	check(t, err)
	for _, binary := range binaries {
		result := map[string]string{}
		run := func(args ...string) (out string) {
			// A port of redsync's servers may be that of somebody's connection, for as long as that lasts.
			for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
				out, _ = try(dir, append([]string{binary, "-test.v", "-test.timeout", "10m"}, args...)...)
				if !strings.Contains(out, "panic: EOF") || time.Now().After(deadline) {
					break
				}
			}
			for _, m := range ended.FindAllStringSubmatch(out, -1) {
				result[m[2]] = m[1]
			}
			return out
		}
		out := run("-test.run", p.mode, "-test.skip", "^("+strings.Join(slices.Collect(maps.Keys(p.fails)), "|")+")$")
		names := strings.Fields(run("-test.list", "^(Test|Example)"))
		for _, name := range names {
			why := p.fails[name]
			if why != "" {
				run("-test.run", "^"+name+"$"+p.mode)
			}
			ok := func() bool { return result[name] == "PASS" }
			// These tests have times of their own, down to 20 ms from the first dial on, which a slow machine exceeds, but not each time.
			for begin := time.Now(); ok() != (why == "") && name != p.either && time.Since(begin) < 2*time.Minute && pace.Factor() > 1.2; {
				t.Logf("%s: %s, once more, since the machine is slow", name, cmp.Or(result[name], "no result"))
				delete(result, name)
				out += run("-test.run", "^"+name+"$"+p.mode)
			}
			if ok() {
				passed++
			}
			if ok() != (why == "") && name != p.either {
				t.Errorf("%s: %s, listed to fail: %q", name, cmp.Or(result[name], "no result"), why)
			} else if why != "" {
				t.Logf("%s: %s: %s", name, result[name], why)
			}
		}
		if of += len(names); t.Failed() {
			t.Log(out)
		}
	}
	t.Logf("%d of %d pass", passed, of)
}

// build makes dir/tests of the peer's files, with those in testdata in place of its own.
func (p peer) build(t *testing.T) (dir string) {
	dir = t.TempDir()
	need := func(in string, words ...string) {
		if out, err := try(in, words...); err != nil {
			testredis.CountSkip(t)
			t.Skipf("the modules that its tests need cannot be had: %s", out)
		}
	}
	packages := cmp.Or(p.packages, ".")
	repo := command(t, ".", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/anteroom/anteroom")
	from, sums := filepath.Join(command(t, ".", "go", "env", "GOROOT"), "src", p.name), []string{filepath.Join(repo, "lab/go.sum")}
	edit := []string{"go", "mod", "edit", "-module=" + p.path, "-go=1.26.0", "-require=github.com/anteroom/anteroom@v0.0.0", "-replace=github.com/anteroom/anteroom=" + repo}
	build := []string{"go", "test", "-c", "-vet=off", "-o", "tests/"}
	if p.module == "" {
		build = append(build, "-gcflags="+p.path+"=-importcfg="+filepath.Join(dir, "importcfg"))
	} else {
		need(".", "go", "mod", "download", p.module)
		root, version, _ := strings.Cut(command(t, ".", "go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", p.module), " ")
		if from = root; !strings.HasPrefix(p.module, p.path) {
			from, edit = filepath.Join(root, p.name), append(edit, "-require="+p.module+"@"+version)
		}
		sums = append(sums, filepath.Join(root, "go.sum"))
	}
	take := func(source string, wanted *regexp.Regexp) {
		check(t, fs.WalkDir(os.DirFS(source), ".", func(name string, d fs.DirEntry, err error) error {
			to := filepath.Join(dir, name)
			if _, absent := os.Stat(to); absent == nil || d.IsDir() || !wanted.MatchString(name) {
				return err
			}
			text, err := os.ReadFile(filepath.Join(source, name))
			return errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o700))
		}))
	}
	take(filepath.Join("testdata", p.name), regexp.MustCompile("")) // what is there stays
	take(from, p.files)
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		check(t, os.WriteFile(filepath.Join(dir, "go.mod"), nil, 0o600))
	}
	var sum []byte
	for _, name := range sums {
		text, err := os.ReadFile(name)
		check(t, err)
		sum = append(sum, text...)
	}
	check(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))
	command(t, dir, edit...)
	need(dir, "go", "list", "-deps", "-test", packages)
	command(t, dir, append(build, packages)...)
	return dir
}

func command(t *testing.T, dir string, words ...string) string {
	t.Helper()
	out, err := try(dir, words...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", words, err, out)
	}
	return strings.TrimSpace(out)
}

func try(dir string, words ...string) (string, error) {
	cmd := exec.Command(words[0], words[1:]...)
	if cmd.Dir = dir; dir != "." {
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
