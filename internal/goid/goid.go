// Package goid identifies the calling goroutine.
package goid

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"

	"github.com/petermattis/goid"
)

// Reader returns a function that returns the calling goroutine's id.
//
// The fast way reads the runtime's own structure, whose layout may change with a Go release
// without any build error. A wrong id would take other goroutines for the owner and silently
// break exclusion, so it is compared with the id that the runtime prints in stack traces, on
// several goroutines together; if one differs, the slow way is used for good.
func Reader() func() int64 { return reader(goid.Get) }

func reader(fast func() int64) func() int64 {
	const goroutines = 4
	var wg, ready sync.WaitGroup
	ids, agrees := make([]int64, goroutines), make([]bool, goroutines)
	hold := make(chan struct{}) // keeps all alive together, so that all ids differ
	ready.Add(goroutines)
	for i := range goroutines {
		wg.Go(func() {
			ids[i] = fast()
			agrees[i] = ids[i] == slow()
			ready.Done()
			<-hold
		})
	}
	ready.Wait()
	close(hold)
	wg.Wait()
	seen := map[int64]bool{0: true}
	for i, ok := range agrees {
		if !ok || seen[ids[i]] {
			return slow
		}
		seen[ids[i]] = true
	}
	return fast
}

// slow parses "goroutine 42 [running]:".
func slow() int64 {
	var buf [64]byte
	fields := bytes.Fields(buf[:runtime.Stack(buf[:], false)])
	if len(fields) < 2 {
		panic("anteroom: the runtime's stack trace has an unknown form")
	}
	id, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		panic("anteroom: the runtime's stack trace has an unknown form: " + err.Error())
	}
	return id
}
