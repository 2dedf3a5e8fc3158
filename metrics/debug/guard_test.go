package debug_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/metrics/debug"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A foreign page that points its own name at this machine has that name in Host.
func TestPage_I7_Hosts(t *testing.T) {
	for _, c := range []struct {
		hosts   []string
		host    string
		allowed bool
	}{
		{nil, "localhost", true},
		{nil, "localhost:6060", true},
		{nil, "LocalHost.:6060", true},
		{nil, "shop.localhost:6060", true},
		{nil, "127.0.0.1:6060", true},
		{nil, "10.1.2.3", true},
		{nil, "[::1]:6060", true},
		{nil, "[::1]", true},
		{nil, "[fe80::1%eth0]:6060", true},
		{nil, "", true}, // not a browser
		{nil, "evil.example", false},
		{nil, "evil.example:6060", false},
		{nil, "localhost.evil.example", false},
		{nil, "evillocalhost", false},
		{nil, "127.0.0.1.evil.example", false},
		{nil, "127.0.0.1@evil.example", false},
		{nil, "[evil.example]:6060", false},
		{[]string{"Shop-1.example."}, "shop-1.example:6060", true},
		{[]string{"shop-1.example"}, "SHOP-1.example.", true},
		{[]string{"shop-1.example"}, "shop-2.example", false},
		{[]string{"shop-1.example"}, "a.shop-1.example", false},
		{[]string{"shop-1.example"}, "localhost", true},
		{[]string{"*"}, "evil.example", true},
	} {
		p := newPage(t, debug.Config{Hosts: c.hosts})
		p.Attach(many(1))
		req := request(http.MethodGet, "/?format=json")
		req.Host = c.host
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, req)
		switch shown := strings.Contains(rec.Body.String(), "order:0"); {
		case c.allowed && (rec.Code != http.StatusOK || !shown):
			t.Errorf("I7: %q with Hosts %q: status %d: %.100s", c.host, c.hosts, rec.Code, rec.Body)
		case !c.allowed && (rec.Code != http.StatusForbidden || shown || !strings.Contains(rec.Body.String(), "Config.Hosts")):
			t.Errorf("I7: %q with Hosts %q: status %d: %.100s", c.host, c.hosts, rec.Code, rec.Body)
		}
	}
}

func TestPage_I7_Sites(t *testing.T) {
	p := newPage(t, debug.Config{Hosts: []string{"*"}})
	for site, status := range map[string]int{
		"": http.StatusOK, "none": http.StatusOK, "same-origin": http.StatusOK,
		"same-site": http.StatusForbidden, "cross-site": http.StatusForbidden, "perhaps": http.StatusForbidden,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			req := request(method, "/")
			if site != "" {
				req.Header.Set("Sec-Fetch-Site", site)
			}
			rec := httptest.NewRecorder()
			p.ServeHTTP(rec, req)
			if rec.Code != status {
				t.Errorf("I7: %s from %q: status %d, want %d", method, site, rec.Code, status)
			}
		}
	}
}

func TestConfig_HostsAreChecked(t *testing.T) {
	for _, host := range []string{"", ".", "a:6060", "http://a", "*.example", "a b", "::1"} {
		if p, err := debug.New(debug.Config{Hosts: []string{"ok.example", host}}); p != nil || !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "Config.Hosts") {
			t.Errorf("%q: %v, %v", host, p, err)
		}
	}
}
