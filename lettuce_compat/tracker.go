package lettucecompat

import (
	"errors"
	"time"
)

const (
	// trackBatch bounds the reads of one round trip.
	trackBatch = 256
	// trackReads bounds the reads of a key that come immediately, in one trackWindow. Beyond it there is one in each
	// trackWindow, until nothing changes for as long: others may write the key all the time, as that of an RWMutex, or
	// Redis may lack the room to note who has read what, and push at random.
	trackReads  = 16
	trackWindow = time.Second
	// trackSilence is after how long without an answer a connection is asked whether it is alive.
	trackSilence = 5 * time.Second
	// trackRefused is how long a server is left alone that refuses.
	trackRefused = time.Minute
	// trackPause is the first pause between connections, and trackWindow the longest. There is none after one that has
	// lasted for longer than that.
	trackPause = 20 * time.Millisecond
	// trackContradictions connections in a row to which Redis has shown none of the held fields, though the client's own
	// questions find them, are a refusal: a hook of the client may rename keys, and the connection has no hooks. They take
	// longer than a demoted master keeps its connections (10 s).
	trackContradictions = 16
)

var (
	// errDoubted ends a connection that may not be to a master.
	errDoubted = errors.New("the tracked keys may have another master")
	errHooked  = errors.New("a connection with the client's options finds none of the held keys: does a hook of the client rename them?")
)

// tracker reads the tracked keys of one master, on a connection of its own. One goroutine connects and asks, another
// one takes in what comes (trackConn).
//
// In words: wait until something is held; connect, and read all of it. Then read what a push has named, as soon as it
// has; ask PING after a silence. When the connection has ended connect again, immediately if it had lasted for a while.
type tracker struct {
	*tracking
	addr string
	kick chan struct{} // cap 1: look at the queues

	logins logins

	// Guarded by tracking.mu.
	held map[string]*Tracked // by key, of which a client has one hold at a time
	up   bool                // the connection serves; else nothing is queued
	now  []*Tracked          // to be read. Those whose Close was called are passed over
	late []*Tracked          // to be read when they are due, in the order of that
	// Of the connection, from before it is made.
	doubted bool
	found   bool // something
	denied  bool // Redis has said on it that a field is not there which a question has found

	answered int // reads
}

// changedLocked queues a read of e, unless one is queued that has not begun.
func (t *tracker) changedLocked(e *Tracked) {
	if !t.up || e.queue != unqueued {
		signal(t.kick)
		return
	}
	at := time.Now()
	switch age := at.Sub(e.window); {
	case age < trackWindow:
	case e.reads > trackReads && age < 2*trackWindow:
		e.window = at
	default:
		e.window, e.reads = at, 0
	}
	if e.reads++; e.reads > trackReads {
		t.lateLocked(e)
		return
	}
	e.queue = queuedNow
	t.now = append(t.now, e)
	signal(t.kick)
}

// lateLocked queues a read of e for later.
func (t *tracker) lateLocked(e *Tracked) {
	e.queue, e.due = queuedLate, time.Now().Add(trackWindow)
	t.late = append(t.late, e)
	signal(t.kick)
}

func (t *tracker) doubt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubtLocked()
}

func (t *tracker) doubtLocked() {
	t.doubted = true
	signal(t.kick)
}

// pushed takes in a push. If it names no key, any may have changed.
func (t *tracker) pushed(push []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for text := range texts(push) {
		if n++; n == 1 && string(text) != "invalidate" {
			return
		}
		if e := t.held[string(text)]; n > 1 && e != nil {
			t.changedLocked(e)
		}
	}
	if n == 1 {
		for _, e := range t.held {
			t.changedLocked(e)
		}
	}
}

func (t *tracker) run() {
	defer t.logins.close()
	contradicted := 0
	for pause := time.Duration(0); t.wait(); {
		began := time.Now()
		err := t.serve()
		if !t.contradicted() {
			contradicted = 0
		} else if contradicted++; contradicted >= t.contradictions {
			err = &trackRefusal{errHooked}
		}
		switch refused := (*trackRefusal)(nil); {
		case errors.As(err, &refused):
			t.warned.Do(func() { t.c.warn.raise(Warning{Kind: WarnTrackingRefused, Err: refused.err}) })
			pause = trackRefused
		case time.Since(began) > trackWindow:
			pause = 0
		default:
			pause = min(max(2*pause, trackPause), trackWindow)
		}
		t.sleep(pause)
		t.move(t)
	}
}

// wait waits until something is held. It returns false after close.
func (t *tracker) wait() bool {
	for {
		t.mu.Lock()
		n := len(t.held)
		t.mu.Unlock()
		if t.ctx.Err() != nil || n > 0 {
			return t.ctx.Err() == nil
		}
		select {
		case <-t.kick:
		case <-t.ctx.Done():
		}
	}
}

func (t *tracker) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.ctx.Done():
	}
}

// serve makes a connection, and serves it until it ends. It returns why.
func (t *tracker) serve() error {
	t.mu.Lock()
	t.doubted, t.found, t.denied = false, false, false
	t.mu.Unlock()
	conn, err := t.connect()
	if err != nil {
		return err
	}
	defer conn.nc.Close()
	t.mu.Lock()
	t.up = true
	for _, e := range t.held {
		e.queue, e.window = unqueued, time.Time{}
		t.changedLocked(e)
	}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.up, t.now, t.late = false, nil, nil
		t.mu.Unlock()
	}()
	for answered := time.Now(); ; {
		some, due, err := t.next()
		if err == nil && len(some) > 0 {
			err = t.read(conn, some)
			answered = time.Now()
		} else if silent := time.Since(answered); err == nil && silent >= trackSilence {
			err = conn.ping(t)
			answered = time.Now()
		}
		if err != nil {
			return err
		}
		if len(some) == trackBatch {
			continue
		}
		select {
		case <-t.kick:
		case <-time.After(min(due, trackSilence)):
		case <-conn.ended:
			return errTrackEnded
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
	}
}

// next takes what is to be read now, and says in how long there will be more. A change from here on queues it again.
func (t *tracker) next() (some []*Tracked, due time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.doubted {
		return nil, 0, errDoubted
	}
	at := time.Now()
	for len(t.late) > 0 && !t.late[0].due.After(at) {
		t.late[0].queue = queuedNow
		t.now = append(t.now, t.late[0])
		t.late = t.late[1:]
	}
	for len(t.now) > 0 && len(some) < trackBatch {
		e := t.now[0]
		t.now = t.now[1:]
		e.queue = unqueued
		if e.held {
			some = append(some, e)
		}
	}
	due = trackSilence
	if len(t.late) > 0 {
		due = t.late[0].due.Sub(at)
	}
	return some, due, nil
}

// read asks about some fields, and has it asked again of a master what may be missing.
func (t *tracker) read(conn *trackConn, some []*Tracked) error {
	replies, err := conn.exist(t, some)
	var missing []*Tracked
	plain := true // Redis has said of each that it is not there, and not that it is elsewhere, or no hash
	t.mu.Lock()
	for i, reply := range replies {
		e := some[i]
		refused, _ := reply.(error)
		switch {
		case hasCode(refused, "NOPERM"):
			err = &trackRefusal{refused}
		case reply == any(int64(1)):
			t.found = true
		case e.held: // also where it is no hash, or elsewhere
			missing = append(missing, e)
			plain = plain && refused == nil
		}
		t.answered++
	}
	for _, e := range missing { // until an answer ends the hold
		if e.queue == unqueued {
			t.lateLocked(e)
		}
	}
	t.mu.Unlock()
	if len(missing) > 0 {
		t.wg.Go(func() { t.ask(missing, plain) })
	}
	return err
}

// ask puts the question that counts. Where it finds what this connection has missed, that may be to no
// master, and is made anew.
func (t *tracker) ask(missing []*Tracked, plain bool) {
	if t.c.opt.OnMissing(t.ctx, missing) {
		t.mu.Lock()
		t.denied = t.denied || plain
		t.doubtLocked()
		t.mu.Unlock()
	}
}

// contradicted reports whether the last connection has found nothing, and a question something that it had asked for.
func (t *tracker) contradicted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.denied && !t.found
}
