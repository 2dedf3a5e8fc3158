package metrics_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

// classesOf returns the values of the label class, with the number of series of each.
func classesOf(t *testing.T, all map[string]series) map[string]int {
	t.Helper()
	n := map[string]int{}
	for name := range all {
		if _, rest, ok := strings.Cut(name, `class="`); ok {
			class, _, _ := strings.Cut(rest, `"`)
			n[class]++
		}
	}
	return n
}

func TestMetrics_I2_ClassesAreCapped(t *testing.T) {
	for _, limit := range []int{0, 1, 7} {
		c, r := newCollector(t, metrics.Config{MaxClasses: limit})
		if limit == 0 {
			limit = 100 // the default
		}
		const more = 50
		for i := range limit + more {
			c.Observer().Lost(fmt.Sprintf("order:%d", i), observe.LostGone)
		}
		c.Observer().Lost("order:0", observe.LostGone) // known, so still counted as itself
		all, _ := gather(t, r)
		n := classesOf(t, all)
		if len(n) != limit+1 || n["other"] == 0 {
			t.Errorf("limit %d: %d classes", limit, len(n))
		}
		want(t, r, map[string]float64{
			`anteroom_lost_total{class="order:0",reason="gone"}`: 2,
			`anteroom_lost_total{class="other",reason="gone"}`:   more,
			`anteroom_class_overflows_total`:                     more,
		})
	}
}

func TestMetrics_I2_FullCapWithoutOverflowHasNoOther(t *testing.T) {
	c, r := newCollector(t, metrics.Config{MaxClasses: 2})
	c.Observer().Lost("a", observe.LostGone)
	c.Observer().Lost("b", observe.LostGone)
	all, _ := gather(t, r)
	if n := classesOf(t, all); len(n) != 2 {
		t.Errorf("classes: %v", n)
	}
}

// A class with the name used for overflow shares its series instead of colliding.
func TestMetrics_ClassNamedOther(t *testing.T) {
	c, r := newCollector(t, metrics.Config{MaxClasses: 1})
	c.Observer().Lost("other", observe.LostGone)
	c.Observer().Lost("beyond", observe.LostGone)
	want(t, r, map[string]float64{
		`anteroom_lost_total{class="other",reason="gone"}`: 2,
		`anteroom_class_overflows_total`:                   1,
	})
}

// LockConfig.Name may hold any bytes, a label value may not.
func TestMetrics_ClassNamesThatAreNotUTF8(t *testing.T) {
	c, r := newCollector(t, metrics.Config{})
	c.Observer().Lost("a\xff", observe.LostGone)
	c.Observer().Lost("a\xfe", observe.LostGone)
	c.Attach(&counts{"a\xff": {Held: 1}, "a\xfe": {Held: 2}})
	want(t, r, map[string]float64{
		"anteroom_lost_total{class=\"a\uFFFD\",reason=\"gone\"}": 2,
		"anteroom_held{class=\"a\uFFFD\"}":                       3,
	})
}

// Many goroutines use the same new classes in parallel, while scrapes continue: nothing is counted twice or lost, and the
// cap holds at every moment.
func TestMetrics_I2_HammerNewClasses(t *testing.T) {
	const workers, rounds, limit, names = 8, 200, 20, 40
	c, r := newCollector(t, metrics.Config{MaxClasses: limit})
	var writers, reader sync.WaitGroup
	done := make(chan struct{})
	reader.Go(func() {
		for {
			all, _ := gather(t, r)
			if n := len(classesOf(t, all)); n > limit+1 {
				t.Errorf("%d classes", n)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for w := range workers {
		writers.Go(func() {
			m := &counts{fmt.Sprintf("class-%d", w): {Held: 1}}
			c.Attach(m)
			for i := range rounds {
				c.Observer().Acquired(fmt.Sprintf("class-%d", (i+w)%names), observe.OutcomeGranted, 1)
			}
			c.Detach(m)
		})
	}
	writers.Wait()
	close(done)
	reader.Wait()
	all, _ := gather(t, r)
	var sum float64
	for name, s := range all {
		if strings.HasPrefix(name, "anteroom_acquire_attempts_total") {
			sum += s.value
		}
	}
	if sum != workers*rounds {
		t.Errorf("%v acquisitions are counted, want %d", sum, workers*rounds)
	}
	other := all[`anteroom_acquire_attempts_total{class="other",outcome="acquired",via="redis"}`].value
	if over := all["anteroom_class_overflows_total"].value; over != other || over == 0 {
		t.Errorf("%v overflows are counted, and %v reports as class other", over, other)
	}
	if n := all["anteroom_managers"].value; n != 0 {
		t.Errorf("%v managers are attached", n)
	}
}
