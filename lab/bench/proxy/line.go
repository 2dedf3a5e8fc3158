package proxy

import (
	"net"
	"runtime"
	"sync"
	"time"
)

// line is one direction of all connections. Each piece of data waits equally long, so the order of arrival is the
// order of delivery, and one queue with one sleeper serves all connections.
type line struct {
	oneWay time.Duration
	pieces chan piece
	pool   sync.Pool
}

// piece is what one read returned.
type piece struct {
	to   net.Conn
	data *[]byte // nil: the sender has ended
	due  time.Time
}

// Waiting pieces have at most pieceSize each; a command of a lock takes a few hundred bytes.
const (
	pieceSize = 16 << 10
	// underWay bounds the waiting pieces; beyond that readers wait, and TCP slows the clients down.
	underWay = 1 << 14
	// stuck is how long a receiver may accept no data; then it is cut off, so that it delays the others only once.
	stuck = time.Second
)

func newLine(oneWay time.Duration) *line {
	return &line{oneWay: oneWay, pieces: make(chan piece, underWay), pool: sync.Pool{New: func() any {
		b := make([]byte, pieceSize)
		return &b
	}}}
}

// carry reads what from sends to to, until from ends.
func (l *line) carry(to, from net.Conn) {
	for {
		b := l.pool.Get().(*[]byte)
		*b = (*b)[:pieceSize]
		n, err := from.Read(*b)
		due := time.Now().Add(l.oneWay)
		if n > 0 {
			*b = (*b)[:n]
			l.pieces <- piece{to, b, due}
		}
		if err != nil {
			l.pieces <- piece{to, nil, due}
			return
		}
	}
}

// run delivers. It sleeps on a thread of its own by the kernel's clock: in an otherwise idle process the runtime's
// timers are rounded to a millisecond, which is as long as the time to be measured.
func (l *line) run() {
	runtime.LockOSThread()
	preciseSleep()
	// The thread is returned unlocked. Ending with it locked would end the thread, and with it every server that it
	// has started (Pdeathsig follows the thread).
	defer runtime.UnlockOSThread()
	defer usualSleep()
	for p := range l.pieces {
		if d := time.Until(p.due); d > 0 {
			sleep(d)
		}
		if p.data == nil {
			_ = p.to.Close() // I3: this ends the other direction's reader
			continue
		}
		_ = p.to.SetWriteDeadline(time.Now().Add(stuck))
		if _, err := p.to.Write(*p.data); err != nil {
			_ = p.to.Close()
		}
		l.pool.Put(p.data)
	}
}
