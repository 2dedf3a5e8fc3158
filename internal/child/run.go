package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// The environment variables by which a child gets its role and its plan.
const (
	roleEnv  = "ANTEROOM_CHILD_ROLE"
	boundEnv = "ANTEROOM_CHILD_BOUND"
)

// grace is how long a role may continue after its parent has ended or called Stop.
const grace = 20 * time.Second

// Role is the work of a child. It ends when ctx does, which is when the parent has ended or called Stop. plan is what
// the parent gave to Start.
type Role func(ctx context.Context, l *Link, plan json.RawMessage) error

// Run does nothing in a program that was not started by Start. In a child it runs the role and ends the process. A
// program calls it before anything else.
func Run(roles map[string]Role) {
	name := os.Getenv(roleEnv)
	if name == "" {
		return
	}
	os.Exit(run(roles[name], name))
}

func run(role Role, name string) int {
	l := &Link{out: os.Stdout, lines: make(chan []byte, 16)}
	bound, err := time.ParseDuration(os.Getenv(boundEnv))
	if err != nil {
		return l.end(err)
	}
	// I2: the process ends even if the role hangs, or its parent reads nothing.
	time.AfterFunc(bound, func() {
		time.AfterFunc(time.Second, func() { os.Exit(3) })
		_ = l.end(fmt.Errorf("it did not end within its bound, %v", bound))
		os.Exit(3)
	})
	ctx, cancel := context.WithCancel(context.Background())
	// I1, if the kernel does not do it and the role ignores its context.
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, func() { os.Exit(3) }) })
	go l.read(os.Stdin, cancel)
	var plan json.RawMessage
	if err := l.Receive(&plan); err != nil {
		return l.end(err)
	}
	if role == nil { // only now: the parent's plan must meet somebody who reads it
		return l.end(fmt.Errorf("a child has no role %q", name))
	}
	return l.end(role(ctx, l, plan))
}

// Link is a child's connection to its parent. Receive is for one goroutine; Send is safe for concurrent use.
type Link struct {
	out   *os.File
	lines chan []byte // closed when the parent sends no more messages
}

// message is one line between the two.
type message struct {
	Body  json.RawMessage `json:"body,omitempty"`
	Error string          `json:"error,omitempty"` // how the role has ended
	Ended bool            `json:"ended,omitempty"`
}

// read passes the parent's lines on. ctx ends with them (I1).
func (l *Link) read(in io.Reader, cancel context.CancelFunc) {
	defer cancel()
	defer close(l.lines)
	for r := bufio.NewReader(in); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		l.lines <- line
	}
}

var errParentEnded = errors.New("the parent has closed the connection")

// Receive waits for the parent's next message.
func (l *Link) Receive(v any) error {
	line, ok := <-l.lines
	if !ok {
		return errParentEnded
	}
	return json.Unmarshal(line, v)
}

// Send sends a message to the parent.
func (l *Link) Send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeLine(l.out, message{Body: body})
}

// writeLine writes v as one line, in one piece.
func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// end reports to the parent how the role has ended, and returns the exit status (I3).
func (l *Link) end(err error) int {
	m := message{Ended: true}
	if err != nil {
		m.Error = err.Error()
	}
	if writeLine(l.out, m) != nil || err != nil {
		return 1
	}
	return 0
}
