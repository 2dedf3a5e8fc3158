package debug

import (
	"crypto/sha256"
	_ "embed" // for the page's three parts
	"encoding/base64"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// The page's parts. Script and style are inserted verbatim, so that their hashes in the policy match.
var (
	//go:embed page.html
	pageText string
	//go:embed page.js
	script string
	//go:embed page.css
	style string
)

// policy is the page's Content-Security-Policy (I3): nothing is loaded beyond the page itself, and its script may
// connect only to its own origin.
var policy = sync.OnceValue(func() string {
	return strings.Join([]string{
		"default-src 'none'", "script-src " + hash(script), "style-src " + hash(style), "connect-src 'self'", "img-src data:",
		"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
	}, "; ")
})

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"lasting": lasting, "place": place,
		"script": func() template.JS { return template.JS(script) },
		"style":  func() template.CSS { return template.CSS(style) },
		"clock":  func(t time.Time) string { return t.UTC().Format("15:04:05") },
		"stamp":  func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"neg":    func(s float64) float64 { return -s },
		"add":    func(a, b int) int { return a + b },
	}).Parse(pageText))
})

// view is the data of the templates.
type view struct {
	Report
	q     query
	cfg   Config
	began time.Time
}

// RefreshMS is the delay before the page's next request. It accounts for the time that the answer has taken up to the
// place where the template calls it.
func (v view) RefreshMS() int64 {
	return max(v.cfg.Refresh, costShare*time.Since(v.began)).Milliseconds()
}

// Class and Key are the filter as the form shows it.
func (v view) Class() string { return plain(v.q.class) }
func (v view) Key() string   { return plain(v.q.key) }

// Limit is the number of locks asked for, MaxLocks its maximum. Filtered reports whether there is a filter.
func (v view) Limit() int     { return v.q.limit }
func (v view) MaxLocks() int  { return maxLocks }
func (v view) Filtered() bool { return v.q.class != "" || v.q.key != "" }

// Several reports whether each lock must name its Manager.
func (v view) Several() bool { return len(v.Managers)+v.ManagersNotShown > 1 }

// Unrecorded reports whether some Manager does not record call sites.
func (v view) Unrecorded() bool {
	for _, m := range v.Managers {
		if !m.CallSitesRecorded {
			return true
		}
	}
	return false
}

// Self, JSON and All link to the same page again, as JSON, and without a filter. url.Values escapes them, and handles
// bytes that are not UTF-8.
func (v view) Self() template.URL { return template.URL(v.q.link(formatHTML)) }
func (v view) JSON() template.URL { return template.URL(v.q.link(formatJSON)) }
func (v view) All() template.URL {
	q := v.q
	q.class, q.key = "", ""
	return template.URL(q.link(formatHTML))
}

// MoreEvents links to the page with all kept events.
func (v view) MoreEvents() template.URL {
	q := v.q
	q.events = v.cfg.Events
	return template.URL(q.link(formatHTML))
}

// Link filters by the class.
func (c Class) Link() template.URL { return template.URL("?class=" + url.QueryEscape(c.filter)) }

func keyLink(filter string) template.URL {
	if filter == "" || len(filter) > maxFilter {
		return ""
	}
	return template.URL("?key=" + url.QueryEscape(filter))
}

// Place says where this process waits in line.
func (l Lock) Place() string {
	if l.Ahead == nil {
		return ""
	}
	if *l.Ahead == 0 {
		return "this process is first"
	}
	return fmt.Sprintf("%d before this process", *l.Ahead)
}

// Unwell marks the locks that sort first.
func (l Lock) Unwell() bool {
	return l.Lost || slices.ContainsFunc(l.Checks, func(c Check) bool { return c.Health == "unhealthy" })
}

// Link filters by the lock's key; "" if that is too long for a link.
func (l Lock) Link() template.URL { return keyLink(l.filter) }

// WaitersLink shows up to 1000 of its waiters.
func (l Lock) WaitersLink() template.URL {
	if link := keyLink(l.filter); link != "" {
		return link + "&waiters=1000"
	}
	return ""
}

// Link filters by the key of the event's lock.
func (e Event) Link() template.URL { return keyLink(e.filter) }

// Tone is the colour of an event: "bad", "good" or "warn".
func (e Event) Tone() string {
	switch e.Kind {
	case "lost", "release_given_up", "unlock_lost", "reentry_lost", "self_deadlock", "abandoned", "deadlock", "misconfigured":
		return "bad"
	case "available", "subscription_up", "alert_cleared":
		return "good"
	}
	return "warn"
}

// Low and High are the bounds of the lease's meter: below a quarter is bad, above a half is good.
func (l Lease) Low() float64  { return l.LengthSeconds / 4 }
func (l Lease) High() float64 { return l.LengthSeconds / 2 }

// Renewal says when the lease is renewed next.
func (l Lease) Renewal() string {
	switch in := l.NextRenewalSeconds; {
	case in == nil:
		return "not renewed"
	case *in < 0:
		return "renewal due for " + lasting(-*in)
	default:
		return "renewal in " + lasting(*in)
	}
}
