//go:build unix

package examples

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/anteroom/anteroom/fence"
)

// document is what the resource stores. The token is part of the content, since an ETag is often a digest of that (S3's is): a
// newer holder that writes the same data must change it.
type document struct {
	Token int64
	Data  string
}

// The resource has conditional writes and no code of ours: an HTTP server with ETag and If-Match, or S3. Each write is
// under the condition that the document is the one whose token was read.
func Example_conditionalWrite() {
	server := httptest.NewServer(&object{})
	defer server.Close()
	r := remote{server.Client(), server.URL}
	ctx := context.Background()

	fmt.Println(r.put(ctx, document{7, "by the old holder"}))
	_, etag, err := r.read(ctx) // the old holder is stopped between its read and its write
	fmt.Println(r.put(ctx, document{8, "by the old holder"}), err)
	fmt.Println(r.write(ctx, document{7, "late"}, etag))
	fmt.Println(r.put(ctx, document{7, "late"}))
	got, _, err := r.read(ctx)
	fmt.Println(got, err)
	// Output:
	// <nil>
	// <nil> <nil>
	// 412 <nil>
	// token 7 refused, 8 was seen: stale fencing token
	// {8 by the old holder} <nil>
}

// remote is a client of the resource.
type remote struct {
	client *http.Client
	url    string
}

// put writes d unless a holder with a greater token has written.
func (r remote) put(ctx context.Context, d document) error {
	for {
		seen, etag, err := r.read(ctx)
		if err != nil {
			return err
		}
		if seen.Token > d.Token {
			return fmt.Errorf("token %d refused, %d was seen: %w", d.Token, seen.Token, fence.ErrStale)
		}
		switch status, err := r.write(ctx, d, etag); {
		case err != nil:
			return err // it may have been written
		case status == http.StatusPreconditionFailed: // somebody has written since the read: with which token?
		case status != http.StatusOK:
			return fmt.Errorf("PUT: %d", status)
		default:
			return nil
		}
	}
}

// read returns the document and its ETag, which is empty if there is none yet.
func (r remote) read(ctx context.Context) (d document, etag string, err error) {
	status, header, body, err := r.send(ctx, http.MethodGet, nil, nil)
	if err != nil || status == http.StatusNotFound {
		return d, "", err
	}
	if etag = header.Get("ETag"); status != http.StatusOK || etag == "" {
		return d, "", fmt.Errorf("GET: %d, ETag %q", status, etag)
	}
	return d, etag, json.Unmarshal(body, &d)
}

// write writes d if the document still has that ETag, or still does not exist.
func (r remote) write(ctx context.Context, d document, etag string) (status int, err error) {
	body, err := json.Marshal(d)
	if err != nil {
		return 0, err
	}
	condition := http.Header{"If-Match": {etag}}
	if etag == "" {
		condition = http.Header{"If-None-Match": {"*"}}
	}
	status, _, _, err = r.send(ctx, http.MethodPut, condition, body)
	return status, err
}

func (r remote) send(ctx context.Context, method string, header http.Header, body []byte) (int, http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	if header != nil {
		req.Header = header
	}
	answer, err := r.client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header, text, errors.Join(err, answer.Body.Close())
}

// object is a server of one resource. It knows nothing of tokens.
type object struct {
	mu   sync.Mutex
	body []byte // nil: not there
}

func (o *object) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256(o.body))
	switch match := r.Header.Get("If-Match"); {
	case r.Method == http.MethodGet && o.body == nil:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", etag)
		_, _ = w.Write(o.body)
	case match != "" && match != etag, r.Header.Get("If-None-Match") == "*" && o.body != nil:
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		o.body = body
	}
}
