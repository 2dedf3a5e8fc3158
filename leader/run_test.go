package leader_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/leader"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// On shutdown Run returns what went wrong beside the end of its context, and nil where nothing did.
func TestRun_ReturnsWhatFailedOnShutdown(t *testing.T) {
	shutdown, flush := errors.New("shutdown"), errors.New("flush failed")
	for name, c := range map[string]struct {
		work func(ctx context.Context, m *anteroom.Manager) error
		want error
	}{
		"its context's error": {func(ctx context.Context, _ *anteroom.Manager) error { return ctx.Err() }, nil},
		"its cause, wrapped": {func(ctx context.Context, _ *anteroom.Manager) error {
			return fmt.Errorf("query: %w", context.Cause(ctx))
		}, nil},
		"both": {func(ctx context.Context, _ *anteroom.Manager) error {
			return errors.Join(ctx.Err(), context.Cause(ctx))
		}, nil},
		"another lock":  {func(ctx context.Context, m *anteroom.Manager) error { return m.Mutex("other").Do(ctx, nil) }, nil},
		"another error": {func(context.Context, *anteroom.Manager) error { return flush }, flush},
		"joined":        {func(ctx context.Context, _ *anteroom.Manager) error { return errors.Join(ctx.Err(), flush) }, flush},
		"joined and wrapped": {func(ctx context.Context, _ *anteroom.Manager) error {
			return fmt.Errorf("work: %w", errors.Join(ctx.Err(), flush))
		}, flush},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager) {
				e, err := leader.New(lt.Manager, anteroom.LockConfig{Key: key}, "")
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancelCause(t.Context())
				err = e.Run(ctx, func(term context.Context) error {
					stop(shutdown)
					<-term.Done()
					return c.work(term, lt.Manager)
				})
				if !errors.Is(err, c.want) {
					t.Errorf("Run says %v, want %v", err, c.want)
				}
			})
		})
	}
}

// What fails for another reason than StepDown is returned, be it before or after: the next term would fail as well.
func TestRun_ReturnsWhatFailedBesideStepDown(t *testing.T) {
	fatal := errors.New("no money")
	for name, c := range map[string]struct {
		work  func(ctx context.Context) error
		again bool
	}{
		"fatal":               {func(context.Context) error { return fatal }, false},
		"fatal, joined":       {func(ctx context.Context) error { return errors.Join(ctx.Err(), fatal) }, false},
		"nothing":             {func(context.Context) error { return nil }, true},
		"its context's error": {func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("query: %w", ctx.Err()) }, true},
		"its cause":           {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager) {
				e, err := leader.New(lt.Manager, anteroom.LockConfig{Key: key}, "")
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				terms := 0
				err = e.Run(ctx, func(ctx context.Context) error {
					if terms++; terms > 1 {
						return nil // it resigns
					}
					if !e.StepDown() {
						t.Error("it does not lead")
					}
					return c.work(ctx)
				})
				if c.again && (terms != 2 || err != nil) || !c.again && (terms != 1 || !errors.Is(err, fatal)) {
					t.Errorf("Run says %v after %d terms", err, terms)
				}
			})
		})
	}
}

// late is a context that ends a little after its deadline, as any may do by the time that a timer takes.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }

func TestRun_ReturnsNilAtTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager) {
		e, err := leader.New(lt.Manager, anteroom.LockConfig{Key: key}, "")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		err = e.Run(late{ctx, time.Now().Add(time.Second)}, func(term context.Context) error {
			<-term.Done()
			return term.Err()
		})
		if err != nil {
			t.Errorf("Run says %v", err)
		}
	})
}

// What lead returns because another lock was lost is an error like any other, and no loss of leadership.
func TestRun_ReturnsTheLossOfAnotherLock(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager) {
		a := stand(t, lt.Manager)
		a.leads(t)
		a.leave <- fmt.Errorf("orders: %w", anteroom.ErrLost)
		synctest.Wait()
		select {
		case err := <-a.ended:
			if !errors.Is(err, anteroom.ErrLost) {
				t.Errorf("Run says %v, want what lead returned", err)
			}
		default:
			t.Error("Run stands again")
			a.stop()
			<-a.ended
		}
	})
}

// A Manager that is closed under a leader ends its term, and Run.
func TestRun_EndsWithItsManager(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, other *anteroom.Manager) {
		a, b := stand(t, lt.Manager), stand(t, other)
		a.leads(t, b)
		if err := lt.CloseWithin(time.Second); err == nil {
			t.Error("Close does not say that a lock was held")
		}
		if err := <-a.ended; !errors.Is(err, anteroom.ErrClosed) {
			t.Errorf("Run says %v, want ErrClosed", err)
		}
		time.Sleep(time.Minute)
		b.leads(t, a)
		b.stop()
		<-b.ended
	})
}

// A lock that cannot be used ends Run; so does a closed Manager.
func TestRun_ReturnsWhatNoWaitingMends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lt := locktest.NewManager(t, anteroom.Config{})
		if _, err := leader.New(lt.Manager, anteroom.LockConfig{}, ""); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("without a key: %v", err)
		}
		e, err := leader.New(lt.Manager, anteroom.LockConfig{Key: key}, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := lt.CloseWithin(time.Second); err != nil {
			t.Fatal(err)
		}
		if err := e.Run(t.Context(), nil); !errors.Is(err, anteroom.ErrClosed) {
			t.Errorf("Run says %v, want ErrClosed", err)
		}
	})
}

// Run's own context may be that of another lock. Its loss ends Run, and is no loss of leadership.
func TestLeader_ALossOfAnotherLockEndsRun(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager) {
		outer, err := lt.Mutex("outer").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Release(t.Context())
		e, err := leader.New(lt.Manager, anteroom.LockConfig{Key: key}, "")
		if err != nil {
			t.Fatal(err)
		}
		failed := errors.New("flush failed")
		err = e.Run(outer.Context(), func(term context.Context) error {
			lt.Lose("outer")
			<-term.Done()
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("Run says %v, want what lead returned", err)
		}
	})
}

// Nor is its StepDown, where it is the term of another Election, one of this.
func TestLeader_AnotherElectionsStepDownEndsRun(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager) {
		election := func(key string) *leader.Election {
			e, err := leader.New(lt.Manager, anteroom.LockConfig{Key: key}, "")
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		outer, inner := election("outer"), election(key)
		failed := errors.New("flush failed")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		_ = outer.Run(ctx, func(ctx context.Context) error {
			defer stop() // or it would be elected again
			err := inner.Run(ctx, func(term context.Context) error {
				outer.StepDown()
				<-term.Done()
				return failed
			})
			if !errors.Is(err, failed) {
				t.Errorf("Run says %v, want what lead returned", err)
			}
			return nil
		})
	})
}

// A refused configuration is an error of the lock library, like all others.
func TestLeader_MinHoldIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, lt *locktest.Manager, _ *anteroom.Manager) {
		_, err := leader.New(lt.Manager, anteroom.LockConfig{Key: key, MinHold: time.Second}, "")
		if e, is := errors.AsType[*anteroom.Error](err); !is || e.Key != key || !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("%v, want an Error about %s that wraps ErrConfig", err, key)
		}
	})
}
