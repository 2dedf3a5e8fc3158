package main

import "sync"

// message is what a child and its parent send each other. Each side has one reader; a caller of ask waits for the
// answer with its number.
//
//	parent → child   start, order, scrape, stop; and answers
//	child → parent   ready (first), enter, write, leave, event, stats, done; and answers
//
// The end of a stream is the end of the side that wrote to it.
type message struct {
	Kind string `json:"kind"`
	// ID matches a request and its answer; 0 if no answer is expected. Each side numbers its own requests, so the
	// same number may be in use in both directions.
	ID uint64 `json:"id,omitempty"`

	Order  *order  `json:"order,omitempty"`  // order
	Report *report `json:"report,omitempty"` // event
	Stats  *stats  `json:"stats,omitempty"`  // stats, done
	Pass   *pass   `json:"pass,omitempty"`   // answer to enter
	Error  string  `json:"error,omitempty"`  // answer to anything, done
	Text   string  `json:"text,omitempty"`   // answer to scrape

	Key   string `json:"key,omitempty"`   // enter
	Token int64  `json:"token,omitempty"` // enter
	Visit int64  `json:"visit,omitempty"` // write, leave
	Value int64  `json:"value,omitempty"` // write
	OK    bool   `json:"ok,omitempty"`    // answer to write
}

// The kinds of messages.
const (
	msgReady  = "ready"
	msgStart  = "start"
	msgOrder  = "order"
	msgScrape = "scrape"
	msgStop   = "stop"
	msgEnter  = "enter"
	msgWrite  = "write"
	msgLeave  = "leave"
	msgEvent  = "event"
	msgStats  = "stats"
	msgDone   = "done"
	msgAnswer = "answer"
)

// conversation is the connection to the other side. Send is safe for concurrent use.
type conversation interface {
	Send(v any) error
	Receive(v any) error
}

// line is one side's end of the conversation. send and ask are safe for concurrent use; receive is for the one
// reader.
type line struct {
	other conversation

	mu      sync.Mutex
	lastID  uint64                    // guarded by mu
	waiting map[uint64]chan<- message // by number, capacity 1 each, guarded by mu
	ended   chan struct{}             // closed when nothing more arrives
}

func newLine(other conversation) *line {
	return &line{other: other, waiting: map[uint64]chan<- message{}, ended: make(chan struct{})}
}

// send sends a message to the other side. An error means that it is gone, which the reader finds out too.
func (l *line) send(m message) error { return l.other.Send(m) }

// ask numbers and sends m and waits for its answer, for the end of the other side, or for done, which may be nil.
// Without an answer ok is false, and m may have taken effect.
func (l *line) ask(done <-chan struct{}, m message) (answer message, ok bool) {
	ch := make(chan message, 1)
	l.mu.Lock()
	l.lastID++
	m.ID = l.lastID
	l.waiting[m.ID] = ch
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, m.ID)
		l.mu.Unlock()
	}()
	if l.send(m) != nil {
		return message{}, false
	}
	select {
	case answer = <-ch:
		return answer, true
	case <-l.ended:
	case <-done:
	}
	return message{}, false
}

// receive passes every message that is not an answer to handle, until the other side ends or sends an invalid
// message. An answer that nobody waits for any more is dropped. handle must not call ask: the answer would come
// through this very loop.
func (l *line) receive(handle func(message)) {
	defer close(l.ended)
	for {
		var m message
		if l.other.Receive(&m) != nil {
			return
		}
		if m.Kind != msgAnswer {
			handle(m)
			continue
		}
		l.mu.Lock()
		if ch := l.waiting[m.ID]; ch != nil {
			ch <- m
			delete(l.waiting, m.ID)
		}
		l.mu.Unlock()
	}
}
