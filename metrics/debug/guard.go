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

// normalHosts returns hosts in the form in which they are compared, or an error that wraps anteroom.ErrConfig.
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

// guard says why req is refused, or "".
//
// A foreign page in the operator's browser may request anything that the browser can reach. It cannot read an answer
// of another origin, so it makes this Page part of its own origin by pointing its own name here for a while (DNS
// rebinding). The request then carries that name in Host. An address is not a name and cannot be pointed elsewhere,
// and browsers resolve localhost themselves. Sec-Fetch-Site marks the other requests that a foreign page makes or
// links to. A client that is not a browser sends neither header, or any value it likes, and reads nothing that its
// user may not read.
func (p *Page) guard(req *http.Request) string {
	if host := req.Host; host != "" && !p.allows(host) {
		return fmt.Sprintf("host %q is not allowed: use an address, or list the name in debug.Config.Hosts", brief(host, maxKeyText))
	}
	switch site := req.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
		return ""
	}
	return "requests from other sites and links are not allowed: enter the address yourself"
}

// allows reports whether a request may be for host, with or without a port.
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
