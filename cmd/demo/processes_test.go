package main

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/screen"
	"github.com/anteroom/anteroom/internal/testredis"
)

func TestDemo_I6_RealProcessesLeaveNothingBehind_Lab(t *testing.T) {
	s := testredis.Start(t)
	c := s.Client(t)
	theirs := []string{"theirs", "anteroom:fence:{theirs}", "anteroom-demo:theirs"}
	for _, key := range theirs {
		if err := c.Set(t.Context(), key, "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs screen.Screen
	var page string
	out.On("an operator releases", func(text string) { page = scrape(t, urlPattern.FindString(text)) })
	out.On("mailing is usable again", func(string) { cancel() })
	args := []string{"--for", "2m", "--processes", "2", "--json", "--redis", s.URL()}
	status := run(ctx, args, &out, &errs)
	wantGood(t, status, out.String(), errs.String())
	checkMetrics(t, page, 2)

	// A line that counts the turns beside somebody who listened for a release ends by itself, with the life of its last place.
	var keys []string
	for end := time.Now().Add(pace.Hang); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if keys, err = c.Keys(t.Context(), "*").Result(); err != nil {
			t.Fatal(err)
		}
		lines := slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, "anteroom:line:") })
		if !lines || time.Now().After(end) {
			break
		}
	}
	if len(keys) != len(theirs) {
		t.Errorf("keys after the run: %q", keys)
	}
	calls := s.Stats(t)
	for _, forbidden := range []string{"flushall", "flushdb", "config|set", "shutdown"} {
		if calls[forbidden] != 0 {
			t.Errorf("%s was called", forbidden)
		}
	}
}

// A user with the permissions that locks need, and no others.
func TestDemo_PauseNotPermittedIsSkipped(t *testing.T) {
	s := testredis.Start(t)
	admin := s.Client(t)
	if err := admin.Do(t.Context(), "acl", "setuser", "worker", "on", ">pw", "~*", "&*", "+@all", "-client|pause").Err(); err != nil {
		t.Fatal(err)
	}
	r, err := newReal("redis://worker:pw@" + s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var out screen.Screen
	d := newDemo(options{}, &out)
	i := &injector{ledger: d.ledger, console: d.console, server: r}
	i.shortAbsence()
	i.shortAbsence()
	if n := strings.Count(out.String(), "skipped, now and later"); n != 1 || i.sums.faults != 0 {
		t.Errorf("%d times skipped, %d faults:\n%s", n, i.sums.faults, out.String())
	}
}

func TestDemo_WrongPasswordIsOneClearError(t *testing.T) {
	s := testredis.Start(t, "--requirepass", "right")
	var out, errs screen.Screen
	url := "redis://:wrong@" + s.Addr()
	status := run(t.Context(), []string{"--redis", url}, &out, &errs)
	if status != 1 || out.String() != "" || !strings.Contains(errs.String(), "cannot acquire a lock on this server") {
		t.Errorf("exit status %d, %q, %q", status, out.String(), errs.String())
	}
}

// startRemote starts one process outside a run.
func startRemote(t *testing.T, s *testredis.Server) (*demo, *remote, *screen.Screen) {
	t.Helper()
	var out screen.Screen
	d := newDemo(options{url: s.URL()}, &out)
	r, err := newRemote(plan{Process: 1, Prefix: d.prefix, URL: s.URL()}, d.ledger, d.reported)
	if err != nil {
		t.Fatal(err)
	}
	d.processes, d.latest = []process{r}, make([][]*dto.MetricFamily, 1)
	return d, r, &out
}

func TestRemoteThatDiesFailsTheRun(t *testing.T) {
	d, r, out := startRemote(t, testredis.Start(t))
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	if err := r.obey(t.Context(), Order{Act: actHold, Key: d.prefix + keyForced}); err != nil {
		t.Fatal(err)
	}
	if err := r.child.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-r.ended
	if err := r.obey(t.Context(), Order{Act: actHold, Key: d.prefix + keyForced}); err == nil {
		t.Error("a dead process obeyed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), pace.Hang)
	defer cancel()
	for len(d.ledger.missing()) == 0 && ctx.Err() == nil {
		pause(ctx, time.Millisecond) // watch runs on a goroutine of its own
	}
	if _, err := r.stop(ctx); err == nil {
		t.Error("stop found nothing wrong")
	}
	if err := d.conclude(); err == nil || !strings.Contains(out.String(), "FAILED   process 1 could not continue") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	for _, a := range d.ledger.accounts {
		if a.inside != 0 {
			t.Errorf("a visit of a dead process goes on in %s", a.name)
		}
	}
}

// Whether it still closes its line before the stop takes effect, or hangs with it open.
func TestRemoteThatHangsIsKilled(t *testing.T) {
	_, r, _ := startRemote(t, testredis.Start(t))
	if err := r.child.Signal(child.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.stop(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("stop: %v", err)
	}
}

func TestRemoteObeysNoStrangeOrderOrSignal(t *testing.T) {
	d, r, _ := startRemote(t, testredis.Start(t))
	if err := r.obey(t.Context(), Order{Act: actHold, Key: "somebody else's"}); err == nil || !strings.Contains(err.Error(), "no lock") {
		t.Errorf("obey: %v", err)
	}
	// Of a signal to the whole group only the parent takes notice.
	if err := r.child.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if families, err := r.gather(t.Context()); err != nil || len(families) == 0 {
		t.Errorf("%d families, %v", len(families), err)
	}
	if err := d.dismiss(); err != nil {
		t.Error(err)
	}
}

// A worker whose parent is gone ends, and one without a plan does not start.
func TestWorkerEndsWithItsParent(t *testing.T) {
	_, r, _ := startRemote(t, testredis.Start(t))
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	if err := r.child.Stop(startTime); err != nil {
		t.Error(err)
	}
	if _, err := newRemote(plan{}, r.ledger, r.report); err == nil || !strings.Contains(err.Error(), "the plan has no usable URL") {
		t.Errorf("without a plan: %v", err)
	}
}
