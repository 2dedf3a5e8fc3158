// Command mutex adds to a number in a file, from as many processes as you like: a sync.Mutex would protect it from the
// goroutines of one process only.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

func main() {
	url := flag.String("redis", "redis://localhost:6379", "URL of Redis")
	file := flag.String("file", "counter.txt", "the file with the number")
	times := flag.Int("n", 100, "how often to add 1")
	flag.Parse()

	m, err := anteroom.Open(context.Background(), *url, anteroom.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.CloseWithin(5 * time.Second)

	mu := m.Mutex("counter:" + *file) // a sync.Locker; was: var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range (*times + i) / 4 {
				mu.Lock()
				if err := add(*file); err != nil {
					log.Print(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	fmt.Println("done")
}

// add reads the number and writes it back with 1 more: two steps, between which nobody else may be.
func add(file string) error {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return os.WriteFile(file, []byte(strconv.Itoa(n+1)+"\n"), 0o644)
}
