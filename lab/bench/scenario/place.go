package scenario

import (
	"errors"
	"os"
	"runtime"
)

// place gives a redis-server the first processor that this program may use, and this program the others: its threads,
// and with them the processes that it starts until the binding is undone. This models a Redis on a machine of its
// own. Otherwise the kernel decides, every few milliseconds, whether a client and Redis share a processor, and that
// affects a round trip more than the libraries do.
//
// While placed, this program runs as many threads as it has processors left, like the children that it starts now, and
// like a program on a machine with no more.
//
// An error says why nothing was moved.
func place(server int) (undo func() error, err error) {
	all, err := processors()
	if err != nil {
		return nil, err
	}
	if len(all) < 2 {
		return nil, errors.New("there is one processor")
	}
	self, threads := os.Getpid(), runtime.GOMAXPROCS(0)
	undo = func() error {
		runtime.GOMAXPROCS(threads)
		// The server's threads may stay where they are if it has ended.
		return errors.Join(bind(self, all), bind(server, all))
	}
	if err := errors.Join(bind(server, all[:1]), bind(self, all[1:])); err != nil {
		return nil, errors.Join(err, undo())
	}
	runtime.GOMAXPROCS(min(threads, len(all)-1))
	return undo, nil
}
