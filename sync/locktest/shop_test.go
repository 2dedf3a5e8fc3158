package locktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// shop is user code. It takes an *anteroom.Manager, as in production, and knows nothing of locktest.
type shop struct {
	locks *anteroom.Manager
	stock int
}

var errSoldOut = errors.New("sold out")

// sell takes one piece out of stock, unless the lock is lost before the end.
func (s *shop) sell(ctx context.Context, pack func()) error {
	return s.locks.Mutex("stock").Do(ctx, func(ctx context.Context) error {
		if s.stock == 0 {
			return errSoldOut
		}
		pack()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.stock--
		return nil
	})
}

func TestShopKeepsItsStockWhenTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lt := locktest.NewManager(t, anteroom.Config{})
		s := &shop{locks: lt.Manager, stock: 1}

		err := s.sell(t.Context(), func() { lt.Lose("stock") })
		if !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("error is %v, want ErrLost", err)
		}
		if s.stock != 1 {
			t.Errorf("stock is %d, want 1", s.stock)
		}
	})
}

func TestShopWaitsAnHourForItsTurn_Lab(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lt := locktest.NewManager(t, anteroom.Config{})
		s := &shop{locks: lt.Manager, stock: 1}

		time.AfterFunc(time.Hour, lt.TakeBy("stock")) // takes it now, and releases it in an hour
		began := time.Now()
		if err := s.sell(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != time.Hour {
			t.Errorf("waited %v, want 1h0m0s", waited) // no polling: the release wakes it
		}
	})
}
