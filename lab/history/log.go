package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"
)

// pageSlots is the number of events in one file of a log (8 MiB).
const pageSlots = 1 << 17

// Log is where one process records. An event is a store into memory mapped from a file: no system call, no blocking
// lock, and what has been stored is the kernel's, so it survives SIGKILL of the process to the last event.
//
// All methods are safe for concurrent use.
type Log struct {
	path string

	page  atomic.Pointer[page]
	mu    sync.Mutex // held while a page is added
	pages int        // guarded by mu
}

// page is one mapped file.
type page struct {
	mem  []byte
	next atomic.Int64 // the first free slot; may run past the end
}

// NewLog creates a log in the files path.0, path.1, …; the first exists when it returns.
func NewLog(path string) (*Log, error) {
	l := &Log{path: path}
	if err := l.grow(nil); err != nil {
		return nil, err
	}
	return l, nil
}

// Add records e. It panics if the disk is full: an incomplete history proves nothing.
func (l *Log) Add(e Event) {
	for {
		p := l.page.Load()
		if n := p.next.Add(1) - 1; n < pageSlots {
			slot := p.mem[n*slotSize : (n+1)*slotSize]
			e.put(slot)
			// Last, so that a slot that a killed process had not completed does not count.
			atomic.StoreUint32(committed(slot), 1)
			return
		}
		if err := l.grow(p); err != nil {
			panic(err)
		}
	}
}

// committed is the mark of a completely written slot.
func committed(slot []byte) *uint32 { return (*uint32)(unsafe.Pointer(&slot[0])) }

// grow adds a page, unless another goroutine has replaced full already.
func (l *Log) grow(full *page) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.page.Load() != full {
		return nil
	}
	f, err := os.OpenFile(fmt.Sprintf("%s.%d", l.path, l.pages), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(pageSlots * slotSize); err != nil {
		return err
	}
	mem, err := mapFile(f, pageSlots*slotSize)
	if err != nil {
		return err
	}
	l.pages++
	l.page.Store(&page{mem: mem})
	return nil
}

// ReadLog returns the events of the log at path, even of a killed process, in the order in which their writing began.
// Without a log there are none.
func ReadLog(path string) ([]Event, error) {
	var events []Event
	for n := 0; ; n++ {
		data, err := os.ReadFile(fmt.Sprintf("%s.%d", path, n))
		if errors.Is(err, fs.ErrNotExist) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		for ; len(data) >= slotSize; data = data[slotSize:] {
			if *committed(data) == 1 {
				var e Event
				e.get(data)
				events = append(events, e)
			}
		}
	}
}
