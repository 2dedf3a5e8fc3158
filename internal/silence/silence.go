// Package silence keeps log lines out of the output of tests. Only tests and laboratories use it.
package silence

import (
	"log/slog"

	"github.com/redis/go-redis/v9/logging"
)

// Logs discards what this process would write by itself: by slog.Default, by the package log, and by go-redis, for
// which each refused connection is a line. Each TestMain calls it first, also for its children, which begin there. A
// test that is about log records has a logger of its own.
func Logs() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // and with it log's standard logger
	logging.Disable()
}
