//go:build unix

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
)

// The tool sees, holds, breaks and watches Redisson's locks if configured to.
func TestDialect_TheToolSpeaksRedisson(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	tool := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"--redis", s.URL(), "--dialect", "redisson"}, args...), nil, &out, &errs)
		return code, out.String(), errs.String()
	}
	must(t, rdb.HSet(t.Context(), "k", "2d4f0d8e-5b64-4f6e-9d0a-9f3c2a1b00de:57", 1).Err())
	must(t, rdb.PExpire(t.Context(), "k", time.Minute).Err())
	must(t, rdb.Set(t.Context(), "redisson_lock_token:{k}", 7, 0).Err())
	code, out, errs := tool("status", "k")
	if code != 0 || !strings.Contains(out, "2d4f0d8e-5b64-4f6e-9d0a-9f3c2a1b00de") || !strings.Contains(out, "7") {
		t.Fatalf("status %d: %q %q", code, out, errs)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var heard bytes.Buffer
	watching := make(chan struct{})
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"--redis", s.URL(), "--dialect", "redisson", "watch", "--count", "3"}, nil, &heard, signalWriter{watching})
	}()
	<-watching
	if code, _, errs := tool("release", "--force", "--yes", "k"); code != 0 {
		t.Fatalf("exit status %d: %s", code, errs)
	}
	startTool(t, s.URL(), "exec", "--dialect", "redisson", "{a}b", "--", "true").expect(0, "")
	must(t, rdb.Publish(t.Context(), "redisson_lock__channel:{j}", "unlocked").Err())
	if code := <-ended; code != 0 {
		t.Fatalf("exit status %d", code)
	}
	lines := strings.Split(strings.TrimSpace(heard.String()), "\n")
	for i, want := range []string{"  k", "  {a}b", "  j  (not a release message: \"unlocked\")"} {
		if i >= len(lines) || !strings.HasSuffix(lines[i], want) {
			t.Fatalf("heard %q, want %q", lines, want)
		}
	}
	for args, want := range map[string]string{
		"--dialect java status k":                                      "--dialect",
		"--dialect redisson watch --redis redis+cluster://" + s.Addr(): "shards",
	} {
		var errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), nil, &bytes.Buffer{}, &errs); code != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit status %d, %q", args, code, errs.String())
		}
	}
}

// signalWriter closes its channel at the first write.
type signalWriter struct{ written chan struct{} }

func (w signalWriter) Write(p []byte) (int, error) {
	select {
	case <-w.written:
	default:
		close(w.written)
	}
	return len(p), nil
}
