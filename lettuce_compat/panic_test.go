package lettucecompat_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// panickingHook is a hook of the user's with a mistake in it.
type panickingHook struct{ redis.Hook }

func (panickingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (panickingHook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { panic("a mistake in a hook") }
}

func (panickingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestAPanicOfAHookEndsTheProcess: it is not on the goroutine of the caller. A caller that recovers would leave its lock in a state that nobody ends.
func TestAPanicOfAHookEndsTheProcess(t *testing.T) {
	t.Parallel()
	const asChild = "ANTEROOM_TEST_PANIC"
	if os.Getenv(asChild) != "" {
		b := onMini(t)
		b.rdb.AddHook(panickingHook{})
		c := b.client(t)
		func() {
			defer func() { _ = recover() }()
			c.Do(ctx, asks("k", 1))
		}()
		t.Log("recovered")
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAPanicOfAHookEndsTheProcess$", "-test.v")
	child.Env = append(os.Environ(), asChild+"=1")
	out, err := child.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); !failed || strings.Contains(string(out), "recovered") {
		t.Fatalf("%v\n%s", err, out)
	}
	// What the panic's own trace would show is there: its text, and the hook.
	for _, part := range []string{"panic: ", "a mistake in a hook", "panickingHook"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
}
