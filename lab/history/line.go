package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// FirstInLine returns the worker that is first in the line of one of these locks. It waits a while for somebody to
// stand: only faults of whoever is about to be called try what a call does then.
func (l *Lab) FirstInLine(keys []int) (worker int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		for _, key := range keys {
			// The tag of a key without braces is the key.
			line, _ := l.Admin.HGetAll(ctx, "anteroom:line:{"+l.Setup.Locks[key].Key+"}").Result()
			if i := l.of(firstPlace(line)); i >= 0 {
				return i, nil
			}
		}
		time.Sleep(2 * time.Millisecond) // there is no signal for a place
	}
	return 0, errors.New("nobody stands in line")
}

// firstPlace returns the field of the first place of a line, "" without one. See lettuce_compat/lua/line.lua.
func firstPlace(line map[string]string) string {
	first, field := uint64(0), ""
	for name, place := range line {
		number, is := strings.CutPrefix(name, "p")
		n, err := strconv.ParseUint(number, 10, 64)
		if is && err == nil && (field == "" || n < first) {
			first = n
			field, _, _ = strings.Cut(place, " ")
		}
	}
	return field
}

// of returns which worker has a field, -1 where none does.
func (l *Lab) of(field string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.workers {
		if p != nil && strings.HasPrefix(field, clientName(p.Plan.Proc)+".") {
			return i
		}
	}
	return -1
}

// clientName is what the fields of a worker begin with.
func clientName(proc uint32) string { return fmt.Sprintf("worker-%d", proc) }
