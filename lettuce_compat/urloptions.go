package lettucecompat

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// urlNumbers are the options of a URL that are numbers, with their bounds. go-redis takes any number, and panics later where
// it makes no sense, some in goroutines of its own.
var urlNumbers = map[string]struct{ low, high int }{
	"db":                         {0, maxDB},
	"protocol":                   {2, 3},
	"max_retries":                {-1, 100},
	"max_redirects":              {-1, 100},
	"dialer_retries":             {1, 100},
	"failing_timeout_seconds":    {0, maxSeconds},
	"pool_size":                  {1, maxConns},
	"pipeline_pool_size":         {0, maxConns},
	"min_idle_conns":             {0, maxConns},
	"max_idle_conns":             {0, maxConns},
	"max_active_conns":           {0, maxConns},
	"max_concurrent_dials":       {0, maxConns},
	"pipeline_read_buffer_size":  {0, maxBuffer},
	"pipeline_write_buffer_size": {0, maxBuffer},
}

const (
	maxDB     = 1 << 20
	maxConns  = 10_000
	maxBuffer = 1 << 30

	maxTime    = 24 * time.Hour
	maxSeconds = int(maxTime / time.Second)
)

// urlTimes are those that are durations; a bare number is seconds.
var urlTimes = []string{
	"min_retry_backoff", "max_retry_backoff", "dial_timeout", "dialer_retry_timeout", "read_timeout", "write_timeout",
	"pool_timeout", "conn_max_idle_time", "conn_max_lifetime", "conn_max_lifetime_jitter", "idle_timeout", "max_conn_age",
}

// checkOptions reports the first option that is out of bounds. Those that it does not know are go-redis' to refuse.
func checkOptions(q url.Values) error {
	for name, bounds := range urlNumbers {
		for _, text := range q[name] {
			if n, err := strconv.Atoi(text); err != nil || n < bounds.low || n > bounds.high {
				return fmt.Errorf("redis: %s is not a number from %d to %d", name, bounds.low, bounds.high)
			}
		}
	}
	for _, name := range urlTimes {
		for _, text := range q[name] {
			d, err := time.ParseDuration(text)
			if n, e := strconv.Atoi(text); e == nil {
				d, err = time.Duration(min(n, maxSeconds+1))*time.Second, nil
			}
			if err != nil || d < 0 || d > maxTime {
				return fmt.Errorf("redis: %s is not a time from 0 to %v, such as 500ms", name, maxTime)
			}
		}
	}
	return nil
}
