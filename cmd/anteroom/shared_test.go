package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// shares holds an RWMutex "rw" to read by two clients, and a Semaphore "sem" of 8 units by the same two, for which a third
// waits.
func shares(t *testing.T, s *testredis.Server) (one, two, third *anteroom.Manager, end func()) {
	t.Helper()
	one, _ = client(t, s, anteroom.Config{})
	two, _ = client(t, s, anteroom.Config{ClientID: "nightly"})
	third, _ = client(t, s, anteroom.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	var holds []*anteroom.Hold
	for _, acquire := range []func() (*anteroom.Hold, error){
		func() (*anteroom.Hold, error) { return one.RWMutex("rw").RAcquire(ctx) },
		func() (*anteroom.Hold, error) { return two.RWMutex("rw").RAcquire(ctx) },
		func() (*anteroom.Hold, error) { return one.Semaphore("sem", 9).Acquire(ctx, 2) },
		func() (*anteroom.Hold, error) { return one.Semaphore("sem", 9).Acquire(ctx, 1) },
		func() (*anteroom.Hold, error) { return two.Semaphore("sem", 8).Acquire(ctx, 4) },
	} {
		h, err := acquire()
		must(t, err)
		holds = append(holds, h)
	}
	waited := make(chan *anteroom.Hold, 1)
	go func() {
		h, _ := third.Semaphore("sem", 8).Acquire(ctx, 2)
		waited <- h
	}()
	awaitLine(t, one, "sem", 1)
	return one, two, third, func() {
		cancel()
		for _, h := range append(holds, <-waited) {
			_ = h.Release(context.Background())
		}
	}
}

// status shows each holder of a lock that several hold, with what it has, and who waits in line.
func TestStatus_Shared(t *testing.T) {
	s := testredis.Start(t)
	one, two, third, end := shares(t, s)
	defer end()
	list, _ := answersTo(t, s, 0, "rw", "sem", "free")
	rw, sem := list[0], list[1]
	if rw.State != "held" || rw.Kind == nil || *rw.Kind != "rwmutex" || rw.Used != nil || rw.Capacity != nil || len(rw.Holders) != 2 || rw.Holders[0].Count != 1 ||
		*rw.InLine != 0 || rw.TTL == nil || *rw.TTL <= 0 || *rw.TTL > 30_000 {
		t.Errorf("%+v", rw)
	}
	if sem.State != "held" || sem.Kind == nil || *sem.Kind != "semaphore" || *sem.Used != 7 || *sem.Capacity != 8 || *sem.InLine != 1 || *sem.First != third.ClientID() {
		t.Errorf("%+v", sem)
	}
	for _, h := range sem.Holders {
		if want := map[string]int64{one.ClientID(): 3, two.ClientID(): 4}[h.Holder]; h.Count != want || h.Client != h.Holder || (h.Pid != 0) != (h.Holder == one.ClientID()) {
			t.Errorf("%+v, want %d units", h, want)
		}
	}
	if f := list[2]; f.Kind != nil || f.Used != nil {
		t.Errorf("%+v", f)
	}
	code, out, errs := tool(t, s, "status", "rw", "sem")
	if code != 0 || errs != "" {
		t.Fatalf("exit status %d, %q, %q", code, out, errs)
	}
	rows := map[string]string{} // by key and holder
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		rows[f[0]+" "+f[11]] = strings.Join(slices.Concat(f[1:4], f[8:10], f[12:]), " ")
	}
	for who, want := range map[string]string{
		"rw " + one.ClientID():  "held rwmutex - 0 - read -",
		"rw " + two.ClientID():  "held rwmutex - 0 - read -",
		"sem " + one.ClientID(): "held semaphore 7/8 1 " + third.ClientID() + " 3 -",
		"sem " + two.ClientID(): "held semaphore 7/8 1 " + third.ClientID() + " 4 -",
	} {
		if rows[who] != want {
			t.Errorf("%s: %q, want %q", who, rows[who], want)
		}
	}
	h, err := one.RWMutex("written").Acquire(t.Context())
	must(t, err)
	defer h.Release(context.Background()) //nolint:errcheck // of a test
	if _, out, _ := tool(t, s, "status", "written"); strings.Fields(out)[14+12] != "write" {
		t.Errorf("%q", out)
	}
}

// list finds locks that several hold, however many these are.
func TestList_Shared(t *testing.T) {
	s := testredis.Start(t)
	_, _, _, end := shares(t, s)
	defer end()
	rdb, ends := s.Client(t), time.Now().Add(time.Hour).UnixMilli()
	fields := []any{":", fmt.Sprintf("rw %d 100 %d %d", 1<<20, ends, ends)}
	for i := range 100 {
		fields = append(fields, fmt.Sprintf("web-7-%d-9f3c2a1b00de", i), fmt.Sprintf("1763776900000017 1 %d 0 %d", ends, 1<<20))
	}
	must(t, rdb.HSet(t.Context(), "many", fields...).Err())
	must(t, rdb.PExpireAt(t.Context(), "many", time.UnixMilli(ends)).Err())
	for i := range 100 {
		must(t, rdb.HSet(t.Context(), "no:lock", fmt.Sprint(i), 1, ":", 1).Err())
	}
	if got := listed(t, s.URL(), 0); !slices.Equal(got, []string{"many", "rw", "sem"}) {
		t.Errorf("%q", got)
	}
}

// release says who holds what, and ends all of it.
func TestRelease_Shared(t *testing.T) {
	s := testredis.Start(t)
	one, two, third, end := shares(t, s)
	defer end()
	for _, m := range []*anteroom.Manager{one, two, third} {
		awaitOwnChannel(t, s, m.ClientID())
	}
	code, out, errs := tool(t, s, "release", "--force", "--yes", "sem")
	if code != 0 || !strings.Contains(out, "released sem, which was held by ") || !strings.Contains(out, one.ClientID()) || !strings.Contains(out, " and ") || !strings.Contains(out, two.ClientID()) ||
		!strings.Contains(errs, "sem is held, 3 of its 8 units, by "+one.ClientID()+" (host") || !strings.Contains(errs, "sem is held, 4 of its 8 units, by "+two.ClientID()) ||
		!strings.Contains(errs, "waiting in line: 1;") {
		t.Errorf("exit status %d, %q, %q", code, out, errs)
	}
	for info, end := (anteroom.Info{}), time.Now().Add(soon); len(info.Holders) != 1 || info.Holders[0].Client != third.ClientID(); time.Sleep(5 * time.Millisecond) {
		var err error
		info, err = one.Inspect(t.Context(), "sem")
		must(t, err)
		if time.Now().After(end) {
			t.Fatalf("the one that waited is not in: %+v", info)
		}
	}
	code, out, errs = tool(t, s, "release", "--force", "--yes", "rw")
	if code != 0 || !strings.Contains(errs, "rw is read by "+one.ClientID()) {
		t.Errorf("exit status %d, %q, %q", code, out, errs)
	}
}
