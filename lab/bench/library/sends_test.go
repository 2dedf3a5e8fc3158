package library_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// ownSender are commands that clients send now and then, not for a lock.
var ownSender = []string{"publish", "client|setname"}

// TestSends: what clients send, according to MONITOR, is what Sends says: nothing else, and not a script's own calls.
// Redis runs commands one by one, so INFO has counted what MONITOR shows before it, whichever goroutine sent it.
func TestSends(t *testing.T) {
	each(t, func(t *testing.T, addr string, lib library.Library) {
		if lib.Local {
			t.Skip("sends nothing")
		}
		m := monitor(t, addr)
		c := open(t, lib, addr)
		p, err := measure.NewProbe(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		begin, err := p.Read()
		if err != nil {
			t.Fatal(err)
		}
		work(t, lib, c)
		end, err := p.Read()
		if err != nil {
			t.Fatal(err)
		}
		seen, called := m.between("info")
		sent := int64(0)
		for verb, n := range seen {
			if slices.Contains(lib.Sends, verb) {
				sent += n
			} else if !slices.Contains(ownSender, verb) {
				t.Errorf("it sends %s, %d times", verb, n)
			}
		}
		for verb, n := range called {
			if slices.Contains(lib.Sends, verb) {
				t.Errorf("its scripts call %s, %d times, which then counts as sent", verb, n)
			}
		}
		if f := end.PerOp(begin, 1, lib.Sends); int64(f[measure.CommandsPerOp]) != sent || sent < 2 {
			t.Errorf("%v commands by INFO, %d by MONITOR: %v", f[measure.CommandsPerOp], sent, seen)
		}
	})
}

// work locks and unlocks in two goroutines, so that some attempts are refused.
func work(t *testing.T, lib library.Library, c library.Client) {
	var both sync.WaitGroup
	for range 2 {
		h := c.Handle("sends:" + lib.Name)
		both.Go(func() {
			for range 10 {
				if err := lock(t.Context(), lib, h); err != nil {
					t.Error(err)
					return
				}
				if err := h.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
}

// monitored is a connection that shows every command.
type monitored struct {
	t  *testing.T
	in *bufio.Reader
}

func monitor(t *testing.T, addr string) *monitored {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	m := &monitored{t, bufio.NewReader(conn)}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := m.in.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatal(line, err)
	}
	return m
}

var shown = regexp.MustCompile(`^\+\S+ \[\d+ (\S+)\] "([^"]*)"(?: "([^"]*)")?`)

// between counts what clients sent between two commands of one kind, and what their
// scripts called meanwhile, by name.
func (m *monitored) between(mark string) (seen, called map[string]int64) {
	seen, called = map[string]int64{}, map[string]int64{}
	for marks := 0; marks < 2; {
		line, err := m.in.ReadString('\n')
		if err != nil {
			m.t.Fatal(err)
		}
		parts := shown.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		by := seen
		if parts[1] == "lua" {
			by = called
		}
		if verb := named(parts[2], parts[3]); verb == mark {
			marks++
		} else if marks == 1 {
			by[verb]++
		}
	}
	return seen, called
}

// named returns INFO's name of a command with such a first argument.
func named(verb, argument string) string {
	verb = strings.ToLower(verb)
	if slices.Contains([]string{"client", "script", "pubsub"}, verb) {
		verb += "|" + strings.ToLower(argument)
	}
	return verb
}

var calls = regexp.MustCompile(`redis\.p?call\(\s*'(\w+)'(?:\s*,\s*'(\w+)')?`)

// TestSends_AnteroomsScripts: the scripts that TestSends' work rarely or never needs, such as the one that begins
// another process' turn, call nothing of Sends either.
func TestSends_AnteroomsScripts(t *testing.T) {
	files, err := filepath.Glob("../../../lettuce_compat/lua/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	lib, err := library.For(library.Anteroom, library.Short)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls.FindAllStringSubmatch(string(text), -1) {
			verb := named(c[1], c[2])
			found[verb] = true
			if slices.Contains(lib.Sends, verb) {
				t.Errorf("%s calls %s", filepath.Base(file), verb)
			}
		}
	}
	// The expression matches something.
	for _, verb := range []string{"hset", "publish", "hdel"} {
		if !found[verb] {
			t.Errorf("no script calls %s", verb)
		}
	}
}
