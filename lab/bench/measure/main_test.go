package measure_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/lab/bench/library"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a library whose Lock and Unlock are supplied by a test.
type fake struct {
	lock   func(ctx context.Context) error
	unlock func() error
}

func (f fake) Handle(string) library.Handle { return f }

func (f fake) Close() error { return nil }

func (f fake) Lock(ctx context.Context) error { return f.lock(ctx) }

func (f fake) Unlock() error { return f.unlock() }

func nothing() error { return nil }

func named(t *testing.T, name string) library.Library {
	t.Helper()
	lib, err := library.For(name, library.Short)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func open(t *testing.T, name string) library.Client {
	t.Helper()
	c, err := named(t, name).Open("")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
