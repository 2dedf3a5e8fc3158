package lettucecompat

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// logins follows the credentials of one client whose provider changes them. go-redis would greet with new ones on a connection that is
// ours, so new ones make new connections.
type logins struct {
	changed func()

	subscribing sync.Mutex // held while a provider is asked, which may call OnNext

	mu       sync.Mutex
	newest   auth.Credentials // nil: none yet
	unlisten auth.UnsubscribeFunc
	closed   bool
}

// use has a connection greeted with the newest credentials, if opt has a provider.
func (l *logins) use(opt *redis.Options) error {
	if opt.StreamingCredentialsProvider == nil {
		return nil
	}
	newest, err := l.listen(opt.StreamingCredentialsProvider)
	if err != nil {
		return err
	}
	opt.StreamingCredentialsProvider = nil
	opt.CredentialsProviderContext = func(context.Context) (string, string, error) {
		name, password := newest.BasicAuth()
		return name, password, nil
	}
	return nil
}

// listen returns the newest credentials.
func (l *logins) listen(provider auth.StreamingCredentialsProvider) (auth.Credentials, error) {
	l.subscribing.Lock()
	defer l.subscribing.Unlock()
	l.mu.Lock()
	newest, listens := l.newest, l.unlisten != nil
	l.mu.Unlock()
	if listens {
		return newest, nil
	}
	first, stop, err := provider.Subscribe(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.newest = nil
		return nil, err
	}
	if l.closed {
		go stop() // which may wait for who is about to call OnNext
		return nil, ErrClosed
	}
	if l.newest == nil { // otherwise newer ones have come meanwhile
		l.newest = first
	}
	l.unlisten = stop
	return l.newest, nil
}

// OnNext takes in new credentials.
func (l *logins) OnNext(c auth.Credentials) {
	l.mu.Lock()
	l.newest = c
	l.mu.Unlock()
	l.changed()
}

// OnError means that the newest ones are those to use.
func (l *logins) OnError(error) {}

func (l *logins) close() {
	l.mu.Lock()
	stop := l.unlisten
	l.unlisten, l.closed = nil, true
	l.mu.Unlock()
	if stop != nil {
		_ = stop()
	}
}
