package crew

import (
	"context"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/history"
)

// Turn is what one process has of the lock until another gets it.
type Turn struct {
	At   int64  // when its first acquisition returned, on the shared clock
	Ops  uint64 // acquisitions
	Proc int64
}

// maxTurns bounds the log. If every acquisition is a turn, as with locks that are not handed off within a process,
// that is 20 seconds of the fastest of them.
const maxTurns = 1 << 19

// Log is the turns of one lock, in a file that all processes map. Only the holder of the lock writes to it.
type Log struct {
	mem  []byte
	file *logFile
}

type logFile struct {
	n     uint64 // number of turns; more than maxTurns if some were not recorded
	turns [maxTurns]Turn
}

// OpenLog maps the file at path, and creates it if it does not exist.
func OpenLog(path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const size = int(unsafe.Sizeof(logFile{}))
	if err := f.Truncate(int64(size)); err != nil { // sparse: only written pages take memory
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &Log{mem, (*logFile)(unsafe.Pointer(&mem[0]))}, nil
}

// Close unmaps the log, which must not be used any more.
func (l *Log) Close() error { return unix.Munmap(l.mem) }

// Note records one acquisition of proc. The caller holds the lock.
func (l *Log) Note(proc int) {
	n := l.file.n
	if n > maxTurns {
		return
	}
	if n > 0 {
		if last := &l.file.turns[n-1]; last.Proc == int64(proc) {
			last.Ops++
			return
		}
	}
	if n < maxTurns {
		l.file.turns[n] = Turn{At: history.Now(), Ops: 1, Proc: int64(proc)}
	}
	l.file.n = n + 1
}

// Turns returns the recorded turns, and whether they are complete.
func (l *Log) Turns() (turns []Turn, all bool) {
	n := min(l.file.n, maxTurns)
	return append([]Turn(nil), l.file.turns[:n]...), l.file.n <= maxTurns
}

// logged is a client whose handles record each acquisition before anybody else may have the lock.
type logged struct {
	library.Client
	log  *Log
	proc int
}

func (c logged) Handle(key string) library.Handle {
	return &loggedHandle{c.Client.Handle(key), c.log, c.proc}
}

type loggedHandle struct {
	library.Handle
	log  *Log
	proc int
}

func (h *loggedHandle) Lock(ctx context.Context) error {
	if err := h.Handle.Lock(ctx); err != nil {
		return err
	}
	h.log.Note(h.proc)
	return nil
}
