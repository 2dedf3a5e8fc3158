package debug

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// The bounds on what one answer lists (I4).
const (
	defaultLocks   = 50
	maxLocks       = 500
	defaultWaiters = 5
	maxWaiters     = 1000
	maxWaitersSum  = 5000 // of all locks of an answer
	defaultShown   = 20   // events
	maxLost        = 20
	maxClasses     = 100
	maxManagers    = 100
	maxFilter      = 1 << 10 // bytes of the parameters class and key, which links repeat
)

// The values of the parameter format.
const (
	formatHTML     = "html"
	formatFragment = "fragment" // what the page's script asks for: the part that changes
	formatJSON     = "json"
)

// query is a parsed request.
type query struct {
	format, class, key     string
	limit, waiters, events int
}

// parseQuery reads the parameters, or returns an error that names the invalid one.
func parseQuery(u *url.URL, events int) (query, error) {
	v, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return query{}, fmt.Errorf("invalid query: %w", err)
	}
	q := query{format: v.Get("format"), class: v.Get("class"), key: v.Get("key")}
	for _, f := range [][2]string{{"class", q.class}, {"key", q.key}} {
		if len(f[1]) > maxFilter {
			return q, fmt.Errorf("%s has %d bytes; at most %d are allowed", f[0], len(f[1]), maxFilter)
		}
	}
	switch q.format {
	case "":
		q.format = formatHTML
	case formatHTML, formatFragment, formatJSON:
	default:
		return q, fmt.Errorf("format is %q; it must be html or json", q.format)
	}
	for _, n := range []struct {
		name               string
		to                 *int
		fallback, min, max int
	}{
		{"limit", &q.limit, defaultLocks, 1, maxLocks},
		{"waiters", &q.waiters, defaultWaiters, 1, maxWaiters},
		{"events", &q.events, min(defaultShown, events), 0, events},
	} {
		*n.to = n.fallback
		text := v.Get(n.name)
		if text == "" {
			continue
		}
		if *n.to, err = strconv.Atoi(text); err != nil || *n.to < n.min || *n.to > n.max {
			return q, fmt.Errorf("%s is %q; it must be a number from %d to %d", n.name, text, n.min, n.max)
		}
	}
	return q, nil
}

// finds reports whether a lock or event of that class and key matches.
func (q query) finds(class, filter string) bool {
	return (q.class == "" || q.class == class) && strings.HasPrefix(filter, q.key)
}

// link returns the query as a relative URL with the given format.
func (q query) link(format string) string {
	v := url.Values{}
	set := func(name, value, fallback string) {
		if value != fallback {
			v.Set(name, value)
		}
	}
	set("format", format, formatHTML)
	set("class", q.class, "")
	set("key", q.key, "")
	set("limit", strconv.Itoa(q.limit), strconv.Itoa(defaultLocks))
	set("waiters", strconv.Itoa(q.waiters), strconv.Itoa(defaultWaiters))
	set("events", strconv.Itoa(q.events), strconv.Itoa(defaultShown))
	return "?" + v.Encode()
}
