package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cache is a build cache for mutants. What Go builds for one mutant, no other can use, and it is about 200 MB: all of
// them would fill a disk. So they build into a cache that begins as the user's, by hard links, and is swept after each.
type cache struct {
	dir  string
	kept map[string]bool // files that the cache began with, by their paths in it
}

// newCache makes a cache beside the user's, since a hard link can't leave its file system. The caller must remove it,
// after an error too.
func newCache() (*cache, error) {
	c := &cache{kept: map[string]bool{}}
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return c, err
	}
	from := strings.TrimSpace(string(out))
	if c.dir, err = os.MkdirTemp(filepath.Dir(from), "mutants-cache"); err != nil {
		return c, err
	}
	return c, walk(from, func(path string, d fs.DirEntry) error {
		to := filepath.Join(c.dir, path)
		if d.IsDir() {
			return os.MkdirAll(to, 0o777)
		}
		c.kept[path] = true
		// A file that is gone was trimmed by another go command.
		if err := os.Link(filepath.Join(from, path), to); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	})
}

// sweep removes what was built since newCache.
func (c *cache) sweep() error {
	return walk(c.dir, func(path string, d fs.DirEntry) error {
		if d.IsDir() || c.kept[path] {
			return nil
		}
		return os.Remove(filepath.Join(c.dir, path))
	})
}

func (c *cache) remove() {
	if c.dir != "" {
		os.RemoveAll(c.dir)
	}
}

// walk calls visit for everything in dir, by its path in it.
func walk(dir string, visit func(path string, d fs.DirEntry) error) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(path, d)
	})
}
