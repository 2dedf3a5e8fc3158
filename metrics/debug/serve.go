package debug

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// costShare bounds what an open page costs: it asks again after as many times as long as
// its answer took to make.
const costShare = 20

// ServeHTTP answers GET and HEAD at whatever path it is mounted. The query parameters are
// in docs/debug.md. It makes one answer at a time, in memory; further requests wait for
// their turn, or until their clients leave.
func (p *Page) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	h := rw.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", policy)
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
	select {
	case p.turn <- struct{}{}:
	case <-req.Context().Done():
		return
	}
	body, contentType, err := p.answer(q)
	if err != nil {
		http.Error(rw, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if req.Method == http.MethodGet {
		_, _ = rw.Write(body) // a client that has left needs no answer
	}
}

// answer makes the whole answer, in the turn that the caller has taken, and gives that back.
func (p *Page) answer(q query) (body []byte, contentType string, err error) {
	defer func() { <-p.turn }()
	began := time.Now()
	r := p.gather(q)
	if q.format == formatJSON {
		body, err = json.MarshalIndent(r, "", "  ")
		return append(body, '\n'), "application/json", err
	}
	v := view{Report: r, q: q, cfg: p.cfg, began: began}
	name := "page"
	if q.format == formatFragment {
		name = "live"
	}
	var b bytes.Buffer
	err = templates.ExecuteTemplate(&b, name, v)
	return b.Bytes(), "text/html; charset=utf-8", err
}
