package faultnet_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// inMemory is a server that notes dials beside or after its end, without a lock: the race detector sees the first.
type inMemory struct{ closed, late int }

func (s *inMemory) Dial() (net.Conn, error) {
	s.late += s.closed
	c, _ := net.Pipe()
	return c, nil
}
func (s *inMemory) Close() { s.closed++ }

// No dial meets a server that closes or has closed.
func TestGate_NoDialBesideOrAfterClose(t *testing.T) {
	s := &inMemory{}
	g := faultnet.NewGate(s)
	if c, err := g.Dial(context.Background(), "memory", ""); err != nil {
		t.Fatal(err)
	} else {
		_ = c.Close()
	}
	var late sync.WaitGroup
	late.Go(func() { _, _ = g.Dial(context.Background(), "memory", "") })
	g.Close()
	late.Wait()
	if _, err := g.Dial(context.Background(), "memory", ""); !errors.Is(err, faultnet.ErrRefused) || s.late > 0 || s.closed != 1 {
		t.Errorf("after Close: %v, %+v", err, *s)
	}
}
