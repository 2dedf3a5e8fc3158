//go:build unix

package debug_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// browser is a headless Chromium, driven by the DevTools protocol over two pipes: JSON messages, each ended by a zero
// byte. Its methods are for one goroutine.
type browser struct {
	t       *testing.T
	in      *os.File
	answers chan answer // closed when the browser has exited
	session string      // of its one tab
	last    int

	mu         sync.Mutex
	complaints []string // of the page: errors, and what the policy refused; guarded by mu
}

// answer is one message from the browser.
type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startBrowser starts the program at path with an empty tab. The end of the test kills it and all processes that it
// has started. If the browser cannot be started here, that is no error of the page: ok is false, and why says more.
func startBrowser(t *testing.T, path string) (b *browser, why string) {
	t.Helper()
	ours, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Not the test's own folder: a helper that dies a moment later may still write to it, and a folder that cannot be
	// removed would fail the test.
	home, err := os.MkdirTemp("", "anteroom-chromium")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	// No sandbox: it does not work for root and in many containers, and only our own page is opened.
	cmd := exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-background-timer-throttling", "--disable-renderer-backgrounding", "--mute-audio", "--hide-scrollbars",
		"--no-proxy-server", "--disable-breakpad", "--disable-crash-reporter", "--user-data-dir="+home, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	cmd.ExtraFiles = []*os.File{ours, theirs} // 3 and 4 of the child
	cmd.Stderr = &said
	cmd.WaitDelay = 10 * time.Second // for helpers that keep standard error open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		for _, f := range []*os.File{ours, in, out, theirs} {
			_ = f.Close()
		}
		_ = os.RemoveAll(home)
		return nil, err.Error()
	}
	_, _ = ours.Close(), theirs.Close()
	b = &browser{t: t, in: in, answers: make(chan answer)}
	var reader sync.WaitGroup
	reader.Go(func() { b.read(out) })
	t.Cleanup(func() {
		// The group is the browser and the processes it started; its id is still valid because the browser has not
		// been waited for.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = in.Close()
		_ = out.Close()
		for range b.answers { // drop answers that nobody waits for
		}
		reader.Wait()
		for range 100 {
			if os.RemoveAll(home) == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	var target struct{ TargetID string }
	if err := b.try("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return nil, fmt.Sprintf("%v: %s", err, strings.TrimSpace(said.String()))
	}
	var attached struct{ SessionID string }
	b.ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.ask(domain+".enable", nil, nil)
	}
	return b, ""
}

// read receives the browser's messages until it exits.
func (b *browser) read(out *os.File) {
	defer close(b.answers)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(line[:len(line)-1], &a) != nil {
			continue
		}
		switch {
		case a.ID != 0:
			b.answers <- a
		case a.Method == "Runtime.exceptionThrown" || a.Method == "Log.entryAdded" && bytes.Contains(a.Params, []byte(`"level":"error"`)):
			b.mu.Lock()
			b.complaints = append(b.complaints, string(a.Params))
			b.mu.Unlock()
		}
	}
}

// try sends a command to the browser and waits for its answer.
func (b *browser) try(method string, params map[string]any, result any) error {
	b.last++
	m := map[string]any{"id": b.last, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return err
	}
	select {
	case a, ok := <-b.answers:
		switch {
		case !ok:
			return fmt.Errorf("the browser has exited; the command was %s", method)
		case a.Error != nil:
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		case a.ID != b.last:
			return fmt.Errorf("%s: answer %d to question %d", method, a.ID, b.last)
		case result != nil:
			return json.Unmarshal(a.Result, result)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("no answer to %s within %v", method, patience)
	}
}

func (b *browser) ask(method string, params map[string]any, result any) {
	b.t.Helper()
	if err := b.try(method, params, result); err != nil {
		b.t.Fatal(err)
	}
}

// value evaluates an expression in the page.
func (b *browser) value(expression string, to any) error {
	var a struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	err := b.try("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &a)
	switch {
	case err != nil:
		return err
	case a.ExceptionDetails != nil:
		return fmt.Errorf("%s: %s", expression, a.ExceptionDetails)
	}
	return json.Unmarshal(a.Result.Value, to)
}

// eval is value, but fails the test on an error.
func eval[T any](b *browser, expression string) (v T) {
	b.t.Helper()
	if err := b.value(expression, &v); err != nil {
		b.t.Fatal(err)
	}
	return v
}

// open loads an address and waits until its script has run.
func (b *browser) open(url string) {
	b.t.Helper()
	var failed struct{ ErrorText string }
	_ = eval[bool](b, "window.left = true") // so that the previous page is not taken for the new one
	if b.ask("Page.navigate", map[string]any{"url": url}, &failed); failed.ErrorText != "" {
		b.t.Fatal(failed.ErrorText)
	}
	b.until(`!window.left && document.readyState == "complete" && document.getElementById("pause")?.hidden === false`)
}

// until waits until an expression is true. Between two pages there is nothing to evaluate it in, which counts as
// false.
func (b *browser) until(expression string) {
	b.t.Helper()
	eventually(b.t, expression, func() bool {
		var is bool
		return b.value("!!("+expression+")", &is) == nil && is
	})
}

// screen sets the size and the colour scheme of the page.
func (b *browser) screen(width, height int, phone bool, scheme string) {
	b.t.Helper()
	b.ask("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}, nil)
	b.ask("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// shoot saves a screenshot of the page.
func (b *browser) shoot(file string) {
	b.t.Helper()
	var shot struct{ Data string }
	b.ask("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// complained returns the page's errors so far.
func (b *browser) complained() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.complaints
}
