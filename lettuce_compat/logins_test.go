package lettucecompat

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// provider calls its function.
type provider func(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error)

func (p provider) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return p(l)
}

// What a provider said before it failed is not used, and newer ones than those that it returns are.
func TestLogins_AProviderThatFails(t *testing.T) {
	fails, changed, stopped := true, 0, 0
	p := provider(func(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
		stop := func() error { stopped++; return nil }
		if fails {
			l.OnNext(auth.NewBasicCredentials("me", "old"))
			return nil, nil, errors.New("no token")
		}
		return auth.NewBasicCredentials("me", "new"), stop, nil
	})
	l := &logins{changed: func() { changed++ }}
	password := func() string {
		opt := redis.Options{StreamingCredentialsProvider: p}
		if err := l.use(&opt); err != nil {
			return err.Error()
		}
		_, password, _ := opt.CredentialsProviderContext(t.Context())
		return password
	}
	if got := password(); got != "no token" {
		t.Error(got)
	}
	fails = false
	if got := password(); got != "new" {
		t.Error(got)
	}
	l.OnNext(auth.NewBasicCredentials("me", "newer"))
	if got := password(); got != "newer" || changed != 2 {
		t.Error(got, changed)
	}
	l.close()
	if stopped != 1 {
		t.Errorf("stopped %d times", stopped)
	}
}
