package debug

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	anteroom "github.com/anteroom/anteroom/sync"
)

// anyHost in Config.Hosts allows every host.
const anyHost = "*"

// normalHosts returns hosts as they are compared, or an error that wraps
// anteroom.ErrConfig.
func normalHosts(hosts []string) ([]string, error) {
	list := make([]string, len(hosts))
	for i, h := range hosts {
		list[i] = strings.ToLower(strings.TrimSuffix(h, "."))
		if list[i] == "" || h != anyHost && strings.ContainsAny(h, ":/* ") {
			return nil, fmt.Errorf("%w: debug.Config.Hosts has %q; use a name without a port, or %q alone", anteroom.ErrConfig, h, anyHost)
		}
	}
	return list, nil
}

// guard says why req is not answered, or "".
//
// A page in the operator's browser may ask whatever the browser can reach. It cannot read
// an answer of another origin, so it makes this Page one of its own: it lets its own name
// point here for a while (DNS rebinding). The request then bears that name in Host. An
// address is no name and points nowhere else, and browsers resolve localhost themselves.
// Sec-Fetch-Site says of the other requests that a foreign page makes or leads to; what is
// no browser sends neither header, or can send what it likes, and reads nothing that its
// user may not read.
func (p *Page) guard(req *http.Request) string {
	if host := req.Host; host != "" && !p.allows(host) {
		return fmt.Sprintf("the page is not shown under the host %q: ask for it by address, or list the name in debug.Config.Hosts", brief(host, maxKeyText))
	}
	switch site := req.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
		return ""
	}
	return "the page is not shown to other sites, nor where their links lead: open its address by itself"
}

// allows tells whether a request may be for host, with or without a port.
func (p *Page) allows(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.Contains(p.cfg.Hosts, host) || slices.Contains(p.cfg.Hosts, anyHost)
}
