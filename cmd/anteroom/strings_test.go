package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
)

// The locks of other libraries, by key, and what only looks like one.
var (
	stringLocks = map[string]string{
		"by:redsync":              "9bAuLaN8+qZ/0OaxK5Ub5g==",
		"by:redislock":            "9bAuLaN8-qZ_0OaxK5Ub5g",
		"rueidislock:0:invoice:7": "\x00\xff\n345678901234567890\x1b[2J"[:24],
	}
	noStringLocks = map[string]string{
		"no:counter": "1234567890123456789012", "no:text": "twenty-four bytes of it", "no:id": "9bAuLaN8+qZ/0OaxK5Ub5h==",
		"no:long": "9bAuLaN8+qZ/0OaxK5Ub5g==9bAuLaN8+qZ/0OaxK5Ub5g==", "rueidislock:0:no": "short", "rueidis:0:no": "\x00\xff\n345678901234567890\x1b[2J"[:24],
	}
)

// status takes a string with a time to live for another library's lock, and list one that has the form of it.
func TestStrings_AreTheLocksOfOtherLibraries(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	var want []string
	for key, value := range stringLocks {
		want = append(want, key)
		must(t, rdb.Set(t.Context(), key, value, time.Minute).Err())
	}
	for key, value := range noStringLocks {
		must(t, rdb.Set(t.Context(), key, value, time.Minute).Err())
	}
	must(t, rdb.Set(t.Context(), "no:end", stringLocks["by:redsync"], 0).Err())
	slices.Sort(want)
	if got := listed(t, s.URL(), 0); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := listed(t, s.URL(), exitNone, "-n", "2"); len(got) != 2 {
		t.Errorf("%q, want two of them", got)
	}

	if code, out, errs := tool(t, s, "list"); code != 0 || strings.Count(out, "\n") != 4 || errs != "" {
		t.Errorf("exit status %d, %q, %q", code, out, errs)
	}

	list, _ := answersTo(t, s, 0, "by:redsync", "no:counter")
	for _, a := range list {
		if a.State != stateString || len(a.Holders) != 0 || a.TTL == nil || *a.TTL <= 0 || *a.TTL > time.Minute.Milliseconds() ||
			a.Token != nil || a.InLine != nil || a.Subscribers != nil || a.Error != "" {
			t.Errorf("%+v", a)
		}
	}
	code, out, errs := tool(t, s, "status", "by:redislock")
	if f := strings.Fields(out); code != 0 || len(f) != 28 || f[15] != stateString || f[20] == "-" || f[20] == "never" || f[25] != "-" ||
		errs != "anteroom: by:redislock: is a string with a time to live: a lock of redsync, redislock or rueidislock, or no lock\n" {
		t.Errorf("exit status %d, %q, %q", code, out, errs)
	}
	if code, _, errs := tool(t, s, "status", "-q", "by:redislock"); code != 0 || errs != "" {
		t.Errorf("status -q: exit status %d, %q", code, errs)
	}
	if code, _, errs := tool(t, s, "release", "--force", "--yes", "by:redislock"); code != exitRefused || !strings.Contains(errs, "it was left alone (a lock of redsync") {
		t.Errorf("release: exit status %d, %q", code, errs)
	}
}

// A user who may not read strings still gets the list of the other locks.
func TestStrings_NeedPermissionsThatListDoesWithout(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	must(t, rdb.Set(t.Context(), "by:redsync", stringLocks["by:redsync"], time.Minute).Err())
	must(t, rdb.HSet(t.Context(), "lock:ours", oneOurs, 1).Err())
	for _, missing := range []string{"-strlen", "-get"} {
		must(t, rdb.Do(t.Context(), "ACL", "SETUSER", "few", "reset", "on", ">pw", "~*", "&*", "+@all", missing).Err())
		url := strings.Replace(s.URL(), "redis://", "redis://few:pw@", 1)
		if got := listed(t, url, 0); !slices.Equal(got, []string{"lock:ours"}) {
			t.Errorf("%s: %q", missing, got)
		}
	}
}
