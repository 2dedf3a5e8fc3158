// Command http serves a handler that works on one request of a user at a time, in however many processes it runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

var workTime = flag.Duration("work", 2*time.Second, "how long the work on a request takes")

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	addr := flag.String("listen", "localhost:8080", "where to serve")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, addr string) error {
	m, err := anteroom.Open(ctx, url, anteroom.Config{Defaults: anteroom.LockConfig{
		Name: "checkout", LeaseTime: 10 * time.Second, MaxHold: time.Minute, // a handler that hangs gives the user back
	}})
	if err != nil {
		return err
	}
	defer m.CloseWithin(5 * time.Second)

	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("serving on", l.Addr())
	mux := http.NewServeMux()
	mux.Handle("POST /checkout", checkout(m))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	answered := make(chan struct{}) // the requests that had begun
	context.AfterFunc(ctx, func() {
		defer close(answered)
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = srv.Shutdown(limit)
	})
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-answered
	return nil
}

// checkout answers 409 while another request of the same user is at work, 503 while Redis does not answer.
func checkout(m *anteroom.Manager) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// The wait is bounded well below the client's patience. A user who leaves ends it, too: r.Context().
		done := false
		err := m.Mutex("checkout:"+r.FormValue("user")).Do(r.Context(), func(ctx context.Context) error {
			err := work(ctx)
			done = err == nil
			return err
		}, anteroom.Wait(500*time.Millisecond))
		switch {
		case errors.Is(err, anteroom.ErrLost):
			log.Printf("lost while at work: %v", err) // the work may have run twice: check it
			http.Error(w, "please check your orders before you try again", http.StatusInternalServerError)
		case done: // a release without an answer is repeated in the background
			fmt.Fprintln(w, "thank you")
		case errors.Is(err, anteroom.ErrNotAcquired):
			http.Error(w, "another checkout of yours is under way", http.StatusConflict)
		case errors.Is(err, anteroom.ErrUnavailable), errors.Is(err, anteroom.ErrClosed):
			w.Header().Set("Retry-After", "5")
			http.Error(w, "not now", http.StatusServiceUnavailable)
		default:
			log.Print(err)
			http.Error(w, "failed", http.StatusInternalServerError)
		}
	}
}

// work takes its time, unless the user leaves or the lock is lost.
func work(ctx context.Context) error {
	select {
	case <-time.After(*workTime):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
