// Command terraform is an HTTP backend of Terraform: it stores states, and locks them for as long as a run of terraform takes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	addr := flag.String("listen", "localhost:8081", "where to serve")
	dir := flag.String("dir", ".", "the folder of the states, which all processes share")
	keep := flag.Duration("keep", time.Hour, "how long a run may take until its next request, or its lock is over")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m, err := anteroom.Open(ctx, *url, anteroom.Config{Defaults: anteroom.LockConfig{Name: "terraform"}})
	if err != nil {
		log.Fatal(err)
	}
	defer m.CloseWithin(5 * time.Second)
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("serving on", l.Addr())
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Base(r.URL.Path) + ".tfstate"
		(&state{m.Mutex("terraform:" + name), filepath.Join(*dir, name), *keep}).serve(w, r)
	})}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	_ = srv.Serve(l)
}

// state is a file, and beside it while it is locked "<file>.lock": who has locked it, for terraform to show, and the ticket by
// which the next request resumes the hold, in whichever process it arrives. Redis alone decides whether the state is locked.
type state struct {
	mu   *anteroom.Mutex
	file string
	keep time.Duration
}

type lock struct {
	Info   json.RawMessage // terraform's
	Ticket string          // a secret: terraform gets only Info
}

func (s *state) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		return
	}
	ctx := context.WithoutCancel(r.Context()) // what a client that leaves has locked must have its ticket stored
	switch run := r.FormValue("ID"); {
	case r.Method == http.MethodGet:
		if body, err = os.ReadFile(s.file); errors.Is(err, os.ErrNotExist) {
			w.WriteHeader(http.StatusNotFound) // terraform begins an empty state
			return
		} else if err == nil {
			_, _ = w.Write(body)
		}
	case r.Method == "LOCK" && id(body) != "":
		var hold *anteroom.Hold
		if hold, err = s.mu.TryAcquire(ctx); err == nil {
			err = s.leave(ctx, hold, body)
		}
	case r.Method == "UNLOCK":
		err = s.resume(ctx, id(body), func(hold *anteroom.Hold, _ lock) error { return hold.Release(ctx) })
	case r.Method == http.MethodPost && run != "":
		err = s.resume(ctx, run, func(hold *anteroom.Hold, l lock) error {
			return errors.Join(write(s.file, body), s.leave(ctx, hold, l.Info))
		})
	case r.Method == http.MethodPost: // terraform -lock=false
		var ran bool
		if ran, err = s.mu.TryDo(ctx, func(context.Context) error { return write(s.file, body) }); !ran && err == nil {
			err = anteroom.ErrNotAcquired
		}
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
	switch {
	case errors.Is(err, anteroom.ErrNotAcquired): // somebody has the lock
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(s.locked().Info)
	case errors.Is(err, anteroom.ErrNotHeld), errors.Is(err, anteroom.ErrLost): // the caller has not, or not any more
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		log.Print(err)
		http.Error(w, "failed", http.StatusInternalServerError)
	}
}

// resume calls f with the hold of the run that has the id.
func (s *state) resume(ctx context.Context, run string, f func(*anteroom.Hold, lock) error) error {
	l := s.locked()
	if run == "" || id(l.Info) != run {
		return anteroom.ErrNotHeld
	}
	hold, err := s.mu.Resume(ctx, anteroom.Ticket(l.Ticket))
	if err != nil {
		return err
	}
	return f(hold, l)
}

// leave detaches the hold until the next request of the run.
func (s *state) leave(ctx context.Context, hold *anteroom.Hold, info []byte) error {
	ticket, err := hold.Detach(ctx, s.keep)
	if ticket == "" {
		return err
	}
	data, _ := json.Marshal(lock{info, string(ticket)})
	return errors.Join(err, write(s.file+".lock", data)) // the ticket may be good also after an error
}

func (s *state) locked() (l lock) {
	data, _ := os.ReadFile(s.file + ".lock") // none: in a moment, or none was ever locked
	_ = json.Unmarshal(data, &l)
	return l
}

// id returns that of a lock info.
func id(info []byte) string {
	var of struct{ ID string }
	_ = json.Unmarshal(info, &of)
	return of.ID
}

// write replaces the file, whole or not at all.
func write(file string, data []byte) error {
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
