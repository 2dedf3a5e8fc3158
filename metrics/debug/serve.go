package debug

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// ServeHTTP answers GET and HEAD at any path. docs/reference/debug-json.md lists the query parameters. It makes
// one answer at a time, in memory, and so rarely that all clients together cost at most a twentieth of a processor:
// further requests wait for their turn, for up to ten seconds or until their clients disconnect, and those with the
// same query share an answer. A request that waits longer gets a 503. A request for a host that is not allowed, or
// from another site, gets a 403: see Config.Hosts.
func (p *Page) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	h := rw.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", policy())
	if why := p.guard(req); why != "" {
		http.Error(rw, why, http.StatusForbidden)
		return
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(rw, "the page is read-only: GET and HEAD only", http.StatusMethodNotAllowed)
		return
	}
	q, err := parseQuery(req.URL, p.cfg.Events)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	a, err := p.pace.get(req.Context(), q, p.answer)
	switch {
	case errors.Is(err, errBusy):
		h.Set("Retry-After", strconv.Itoa(p.pace.retryAfter()))
		http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		return
	case err != nil:
		return // the client has disconnected
	case a.err != nil:
		http.Error(rw, "cannot render the page: "+a.err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", a.contentType)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	if req.Method == http.MethodGet {
		_, _ = rw.Write(a.body) // an error means that the client has disconnected
	}
}

// answer makes the complete answer.
func (p *Page) answer(q query) answer {
	began := time.Now()
	r := p.gather(q)
	if q.format == formatJSON {
		body, err := json.MarshalIndent(r, "", "  ")
		return answer{body: append(body, '\n'), contentType: "application/json", err: err}
	}
	v := view{Report: r, q: q, cfg: p.cfg, began: began}
	name := "page"
	if q.format == formatFragment {
		name = "live"
	}
	var b bytes.Buffer
	err := templates().ExecuteTemplate(&b, name, v)
	return answer{body: b.Bytes(), contentType: "text/html; charset=utf-8", err: err}
}
