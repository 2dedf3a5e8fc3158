package lettucecompat

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
)

// What may come in RESP3 is understood as go-redis has it.
func TestResp3_Values(t *testing.T) {
	for text, want := range map[string]string{
		"+OK\r\n": "OK", ":1\r\n": "1", "$-1\r\n": "redis: nil", "_\r\n": "", "$0\r\n\r\n": "", "$3\r\na\r\n\r\n": "a\r\n", "-ERR no\r\n": "ERR no",
		"*0\r\n": "[]", "*-1\r\n": "redis: nil", "*2\r\n:1\r\n*1\r\n+x\r\n": "[1 [x]]", "#t\r\n": "t", ",1.5\r\n": "1.5", "(12345678901234567890\r\n": "12345678901234567890",
		"%1\r\n+a\r\n%1\r\n+b\r\n:1\r\n": "[a [b 1]]", "~1\r\n$1\r\nx\r\n": "[x]",
	} {
		s := scan{kinds: resp3}
		n, err := s.next([]byte(text + "rest"))
		if n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
			continue
		}
		if v, _ := value([]byte(text)); fmt.Sprint(v) != want {
			t.Errorf("%q: %v", text, v)
		}
	}
}

// A push hands out its strings.
func TestResp3_Push(t *testing.T) {
	for text, want := range map[string]string{
		">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$2\r\nb\r\r\n": "[invalidate a b\r]",
		">2\r\n$10\r\ninvalidate\r\n_\r\n":                          "[invalidate]",
		">3\r\n$-1\r\n:3\r\n$0\r\n\r\n":                             "[]",
	} {
		s := scan{kinds: resp3}
		if n, err := s.next([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
			continue
		}
		all := []string{}
		for b := range texts([]byte(text)) {
			all = append(all, string(b))
		}
		if fmt.Sprint(all) != want {
			t.Errorf("%q: %q", text, all)
		}
		if n, err := (&scan{kinds: resp2}).next([]byte(text)); n != 0 || err == nil {
			t.Errorf("%q is no reply to a script: %d, %v", text, n, err)
		}
	}
}

// dripping is a connection on which text comes, some bytes at a time.
type dripping struct {
	net.Conn
	text string
	step int
}

func (d *dripping) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), d.step)], d.text)
	if d.text = d.text[n:]; n == 0 {
		return 0, net.ErrClosed
	}
	return n, nil
}

// What comes is bounded: nothing ends the process, and no memory is made for what has not come.
func TestInbox_WhatIsSpoiled(t *testing.T) {
	for _, text := range []string{
		"$4611686018427387904\r\n", "*4611686018427387904\r\n", "%4611686018427387904\r\n", "*1048577\r\n", "%524289\r\n", "$x\r\n", "\r\n", "$3\r\nabcd\r\n", "$-2\r\n",
		"|1\r\n+a\r\n+b\r\n", strings.Repeat("*1\r\n", 1000), strings.Repeat("x", 1<<20), "+" + strings.Repeat("x", 1<<20), ":1x\r\n", ":1\n",
	} {
		for _, step := range []int{1, 7, 1 << 20} {
			from, in, bad := &dripping{text: text, step: step}, newInbox(resp3), error(nil)
			for err := error(nil); err == nil && bad == nil; {
				err = in.read(from)
				_, bad = in.next()
			}
			if !errors.Is(bad, errReply) || len(in.buf) > 2*maxLine {
				t.Errorf("%.30q, %d bytes at a time: %v, and a buffer of %d bytes", text, step, bad, len(in.buf))
			}
		}
	}
}

// What comes in pieces is taken out whole, and a buffer that was long is not kept.
func TestInbox_Pieces(t *testing.T) {
	long := fmt.Sprintf("$%d\r\n%s\r\n", 2*spareRoom, strings.Repeat("x", 2*spareRoom))
	want := []string{":1\r\n", "*2\r\n:1\r\n$1\r\na\r\n", long, "+OK\r\n"}
	for _, step := range []int{3, 1000, 1 << 20} {
		from, in, all := &dripping{text: strings.Join(want, ""), step: step}, newInbox(resp2), []string{}
		for in.read(from) == nil {
			for v, err := in.next(); v != nil; v, err = in.next() {
				if all = append(all, string(v)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !slices.Equal(all, want) || len(in.buf) != readRoom {
			t.Errorf("%d bytes at a time: %.60q, and a buffer of %d bytes", step, all, len(in.buf))
		}
	}
}

// FuzzReply: whatever comes is read without a panic, in bounded memory, and the same in pieces as with something behind it.
func FuzzReply(f *testing.F) {
	for _, text := range []string{
		":1\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n$-1\r\n", "+OK\r\n", "-ERR no\r\n", "*-1\r\n", "$4611686018427387904\r\n", "*1048576\r\n",
		"*1\r\n*1\r\n*1\r\n", "*2\r\n*0\r\n*2\r\n+\r\n$0\r\n\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", "%1\r\n$5\r\nproto\r\n:3\r\n", ">2\r\n$1\r\na\r\n_\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kinds := range []string{resp2, resp3} {
			n, err := (&scan{kinds: kinds}).next(b)
			if n > len(b) || n < 0 || err != nil && n != 0 {
				t.Fatalf("%d, %v", n, err)
			}
			pieces := scan{kinds: kinds}
			for i := range b {
				if m, err2 := pieces.next(b[:i+1]); m > 0 || err2 != nil {
					if m != n || (err2 != nil) != (err != nil) && i == len(b)-1 {
						t.Fatalf("in pieces %d, %v; in one %d, %v", m, err2, n, err)
					}
					break
				}
			}
			if n == 0 {
				continue
			}
			v, rest := value(b)
			if len(rest) != len(b)-n {
				t.Fatalf("%v leaves %d bytes of %d, not %d", v, len(rest), len(b), len(b)-n)
			}
			again, _ := value(append(b[:n:n], ":1\r\n"...))
			if fmt.Sprint(again) != fmt.Sprint(v) {
				t.Fatalf("%v in one piece, %v with more behind it", v, again)
			}
			for text := range texts(b[:n]) {
				if len(text) > n {
					t.Fatalf("a string of %d bytes in a value of %d", len(text), n)
				}
			}
		}
	})
}
