//go:build unix

package debug_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/metrics/debug"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// visits counts a browser's requests.
type visits struct {
	http.Handler
	pages, fragments, others atomic.Int64
	unreachable              atomic.Bool // the program does not answer
}

func (v *visits) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	switch {
	case v.unreachable.Load():
		http.Error(rw, "unreachable", http.StatusBadGateway)
		return
	case req.URL.Path != "/debug/anteroom/":
		v.others.Add(1)
	case req.URL.Query().Get("format") == "fragment":
		v.fragments.Add(1)
	default:
		v.pages.Add(1)
	}
	v.Handler.ServeHTTP(rw, req)
}

// chromium starts the browser, or skips the test if there is none that works here. It is large, so make test does not
// install it, but counts the skip; make lab installs it.
func chromium(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		testredis.CountSkip(t)
		t.Skip("no chromium in PATH: install it with `apt-get install chromium` or your system's equivalent")
	}
	b, why := startBrowser(t, path)
	if b == nil {
		testredis.CountSkip(t)
		t.Skip("chromium cannot be started here: " + why)
	}
	return b
}

// contended is a program at work with two Managers: a lock that nobody gets for now, one that changes hands all the
// time, one that somebody else has overwritten, and one whose name is HTML with a script.
type contended struct {
	m, two *anteroom.Manager
	hold   *anteroom.Hold // of order:42
	parked *parked        // seven behind it
	passed atomic.Int64   // of order:busy
	stop   func()
}

func contend(t *testing.T, p *debug.Page) *contended {
	srv := server(t)
	cfg := anteroom.LockConfig{
		Name: "orders", Fencing: true, LeaseTime: 10 * time.Minute, RenewalTime: 5 * time.Minute, WatchdogPeriod: 500 * time.Millisecond,
	}
	m := manager(t, srv, p, anteroom.Config{ClientID: "worker-1", RecordCallSites: true, Defaults: cfg})
	c := &contended{m: m, hold: acquire(t, m.Mutex("order:42"))}
	c.parked = park(t, m, m.Mutex("order:42"), 7)
	two := manager(t, srv, p, anteroom.Config{ClientID: "worker-2", RecordCallSites: true, Defaults: cfg})
	c.two = two
	cfg.Name, cfg.Key = "invoices", "invoice:2026-11"
	invoice, err := two.NewMutex(cfg)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := acquire(t, invoice)
	srv.HSet("invoice:2026-11", "foreign", "1")
	elsewhere := park(t, two, two.Mutex("order:42"), 1)
	evil := acquire(t, m.Mutex(`<img src=x onerror="document.title='evil'">`+"\xff"+strings.Repeat("long", 40)))
	ctx, cancel := context.WithCancel(bg)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if h, err := m.Mutex("order:busy").Acquire(ctx); err == nil {
					c.passed.Add(1)
					time.Sleep(time.Millisecond)
					_ = h.Release(bg)
				}
			}
		})
	}
	c.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		c.parked.end()
		elsewhere.end()
		_ = spoilt.Release(bg)
		_ = c.hold.Release(bg)
		_ = evil.Release(bg)
	})
	t.Cleanup(c.stop)
	return c
}

// article finds the page's section of order:42 in a Manager.
func article(m *anteroom.Manager) string {
	return fmt.Sprintf(`document.querySelector('article[data-manager="%s"][data-hash="%s"]')`, m.ClientID(), observe.KeyHash("order:42"))
}

// A real browser shows the state of a running program, and follows it without a reload.
func TestChromium_ShowsAContendedRun_Lab(t *testing.T) {
	b := chromium(t)
	p := newPaced(t, debug.Config{Refresh: 500 * time.Millisecond})
	c := contend(t, p)
	article, elsewhere := article(c.m), article(c.two)
	v := &visits{Handler: p}
	srv := httptest.NewServer(v)
	t.Cleanup(srv.Close) // before the locks are released, so it runs last

	b.screen(1280, 900, false, "light")
	b.open(srv.URL + "/debug/anteroom/")
	state := func() observe.State {
		for _, s := range c.m.Snapshot() {
			if s.Key == "order:42" {
				return s
			}
		}
		t.Fatal("order:42 is not live")
		return observe.State{}
	}
	s := state()
	b.until(article + `?.innerText.includes("renewal in")`) // the first renewal, of the brief lease, may just be due
	text := eval[string](b, article+".innerText")
	for _, want := range []string{
		"order:42", "owned", "class orders", fmt.Sprintf("by goroutine %d, hold", s.Goroutine), "helpers_test.go:", s.Holder,
		fmt.Sprint(s.Token), "7 waiting", "and 2 more", fmt.Sprintf("goroutine %d, hold", s.Waiters[0].Goroutine),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q in:\n%s", want, text)
		}
	}
	if n := eval[int](b, article+`.querySelectorAll(".waiters li").length`); n != 5 {
		t.Errorf("%d waiters are listed", n)
	}
	if eval[float64](b, article+`.querySelector("meter").value`) > 600 {
		t.Error("more is left than the lease had")
	}

	b.until(`document.querySelector("article.unwell")?.innerText.includes("foreign_field")`)
	b.until(elsewhere + `?.dataset.status == "acquiring"`)
	b.until(elsewhere + `?.innerText.includes("held by ` + s.Holder + `")`)
	save(b, "debug")

	// The page is marked; a reload would remove the mark.
	_ = eval[bool](b, `window.mark = true`)
	shown := eval[string](b, `document.querySelector("time").dateTime`)
	b.until(`document.querySelector("time").dateTime != "` + shown + `"`)
	ended := c.hold.Release(bg) // all seven pass
	b.until(article + ` === null || ` + article + `.dataset.waiting == "0"`)
	h := acquire(t, c.m.Mutex("order:42"))
	waiters := park(t, c.m, c.m.Mutex("order:42"), 3)
	b.until(article + `?.dataset.waiting == "3"`)
	token, _ := h.Token()
	if text := eval[string](b, article+".innerText"); !strings.Contains(text, h.Holder()) || !strings.Contains(text, fmt.Sprint(token)) {
		t.Errorf("the new holder is %s with token %d, and the page says\n%s", h.Holder(), token, text)
	}
	if !eval[bool](b, `window.mark === true`) || v.pages.Load() != 1 || v.fragments.Load() == 0 || ended != nil || c.passed.Load() == 0 {
		t.Errorf("%d pages and %d fragments were asked for; %d passed; %v", v.pages.Load(), v.fragments.Load(), c.passed.Load(), ended)
	}

	pauses(t, b, v)

	// It has room in every width, in both colour schemes, with a key of 200 letters.
	for _, width := range []int{1280, 390, 320} {
		for _, scheme := range []string{"light", "dark"} {
			b.screen(width, 844, width < 500, scheme)
			if got := eval[int](b, `document.documentElement.scrollWidth`); got > width {
				t.Errorf("at width %d the page is %d wide", width, got)
			}
			save(b, fmt.Sprintf("debug-%d-%s", width, scheme))
			// Also once holds and waits have lasted for long, and many are held: the page is as it was afterwards.
			if got := eval[int](b, `(() => {
				const main = document.querySelector("main"), shown = main.innerHTML;
				main.querySelectorAll("td.n").forEach((cell) => cell.textContent = cell.matches(".dim") ? "23 h 59 min" : "1000000");
				const wide = document.documentElement.scrollWidth;
				main.innerHTML = shown;
				return wide;
			})()`); got > width {
				t.Errorf("at width %d, with long times and high numbers, the page is %d wide", width, got)
			}
		}
	}
	if title := eval[string](b, `document.title`); !strings.HasSuffix(title, "Anteroom") || eval[int](b, `document.images.length`) != 0 || v.others.Load() != 0 {
		t.Errorf("title %q, %d requests elsewhere", title, v.others.Load())
	}
	waiters.end()
	_ = h.Release(bg)
}

// save makes a picture of the page in the folder ANTEROOM_SHOTS: docs/pictures/debug.png is one.
func save(b *browser, name string) {
	if dir := os.Getenv("ANTEROOM_SHOTS"); dir != "" {
		b.shoot(filepath.Join(dir, name+".png"))
	}
}

// pauses checks that a paused page does not change, and that the page says when the program does not answer. Only the
// failed requests may cause errors.
func pauses(t *testing.T, b *browser, v *visits) {
	t.Helper()
	if said := b.complained(); len(said) > 0 {
		t.Errorf("the browser complains: %v", said)
	}
	_ = eval[bool](b, `pause.click(), true`)
	paused := eval[string](b, `document.querySelector("time").dateTime`)
	// An answer in flight may still arrive, and is not shown. Then nothing is requested during a time in which a
	// running page would.
	eventually(t, "nothing is asked for any more", func() bool {
		asked := v.fragments.Load()
		return eval[bool](b, `new Promise((done) => setTimeout(done, 800, true))`) && v.fragments.Load() == asked
	})
	if got := eval[string](b, `document.querySelector("time").dateTime`); got != paused {
		t.Errorf("a paused page continued from %s to %s", paused, got)
	}
	if said := eval[string](b, `said.textContent`); !strings.Contains(said, "Paused at") {
		t.Errorf("a paused page says %q", said)
	}
	_ = eval[bool](b, `pause.click(), true`)
	b.until(`document.querySelector("time").dateTime != "` + paused + `"`)
	v.unreachable.Store(true)
	b.until(`said.textContent.includes("this data is out of date")`)
	v.unreachable.Store(false)
	b.until(`said.textContent == ""`)
}
