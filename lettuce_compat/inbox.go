package lettucecompat

import "net"

const (
	// readRoom is what an inbox has room for at least.
	readRoom = 4 << 10
	// spareRoom is the most that a buffer keeps between two uses: what 400 callers send at a time.
	spareRoom = 128 << 10
)

// inbox is what has come on a connection, and was not taken out yet: buf[r:w]. It is of one goroutine at a time.
type inbox struct {
	buf  []byte
	r, w int
	scan scan
}

// newInbox makes one for values of these kinds.
func newInbox(kinds string) inbox {
	return inbox{buf: make([]byte, readRoom), scan: scan{kinds: kinds}}
}

// read waits until something comes. It doubles a buffer that is full: memory is made for what has come.
func (b *inbox) read(from net.Conn) error {
	switch {
	case b.w == len(b.buf) && b.r > 0:
		b.w = copy(b.buf, b.buf[b.r:b.w])
		b.r = 0
	case b.w == len(b.buf):
		b.buf = append(b.buf, make([]byte, len(b.buf))...)
	}
	n, err := from.Read(b.buf[b.w:])
	b.w += n
	return err
}

// next takes out the next value, which is valid until read is called; nil: none is complete. An error: the rest cannot be understood.
func (b *inbox) next() ([]byte, error) {
	if b.r == b.w {
		b.r, b.w = 0, 0
		if len(b.buf) > spareRoom {
			b.buf = make([]byte, readRoom)
		}
		return nil, nil
	}
	n, err := b.scan.next(b.buf[b.r:b.w])
	if n == 0 {
		return nil, err
	}
	b.r += n
	return b.buf[b.r-n : b.r], nil
}
