package promise

import (
	"fmt"
	"os"
)

// Program is a testredis.TB for a program that runs without a test: what is fatal to a
// test ends the function given to WithoutTest.
type Program struct {
	name     string
	cleanups []func()
}

type fatal struct{ error }

// WithoutTest runs f and then what f left to clean up, last things first.
func WithoutTest(name string, f func(p *Program) error) (err error) {
	p := &Program{name: name}
	defer func() {
		for i := len(p.cleanups) - 1; i >= 0; i-- {
			p.cleanups[i]()
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			f, isFatal := r.(fatal)
			if !isFatal {
				panic(r)
			}
			err = f
		}
	}()
	return f(p)
}

// Helper does nothing.
func (p *Program) Helper() {}

// Name returns the name given to WithoutTest.
func (p *Program) Name() string { return p.name }

// TempDir makes a directory that is removed in the end.
func (p *Program) TempDir() string {
	dir, err := os.MkdirTemp("", "anteroom-promise-")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Cleanup has f run in the end.
func (p *Program) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

// Fatal ends the run with an error.
func (p *Program) Fatal(args ...any) { panic(fatal{fmt.Errorf("%s", fmt.Sprint(args...))}) }

// Fatalf does the same.
func (p *Program) Fatalf(format string, args ...any) { panic(fatal{fmt.Errorf(format, args...)}) }

// Skip does the same: a program that cannot measure has failed.
func (p *Program) Skip(args ...any) { p.Fatal(args...) }
