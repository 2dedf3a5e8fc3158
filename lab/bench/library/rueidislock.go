package library

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockFor omits NoLoopTracking if turns are short: it saves a command, but is no faster there, and some
// goroutines then have no turn for a long time.
func rueidislockFor(kind Kind) Library { return rueidislockWith(kind != Short, 2*time.Second) }

// rueidislockWith is rueidislock as in its README for one Redis, with the same lease as the others. TryNextAfter
// bounds each command; with the default of 20 ms an attempt that takes longer is given up, and with NoLoopTracking
// its waiters are then not notified.
func rueidislockWith(noLoop bool, tryNextAfter time.Duration) Library {
	settings := "KeyMajority 1, NoLoopTracking, KeyValidity 30s, TryNextAfter " + tryNextAfter.String()
	if !noLoop {
		settings = "KeyMajority 1, KeyValidity 30s, TryNextAfter " + tryNextAfter.String()
	}
	return Library{
		Name: Rueidislock, Module: "github.com/redis/rueidis", Settings: settings,
		Sends: []string{"evalsha", "eval", "hello", "client|tracking", "client|setinfo", "ping"},
		Open: func(addr string) (Client, error) {
			locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption: rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true},
				KeyMajority:  1, NoLoopTracking: noLoop, KeyValidity: peerLease, TryNextAfter: tryNextAfter,
			})
			if err != nil {
				return nil, err
			}
			return rueidislockClient{locker}, nil
		},
	}
}

type rueidislockClient struct{ locker rueidislock.Locker }

func (c rueidislockClient) Handle(key string) Handle {
	return &rueidislockHandle{locker: c.locker, key: key}
}

func (c rueidislockClient) Close() error { c.locker.Close(); return nil }

type rueidislockHandle struct {
	locker  rueidislock.Locker
	key     string
	release context.CancelFunc
}

func (h *rueidislockHandle) Lock(ctx context.Context) (err error) {
	_, h.release, err = h.locker.WithContext(ctx, h.key)
	return err
}

func (h *rueidislockHandle) Unlock() error { h.release(); return nil }
