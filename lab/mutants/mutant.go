package main

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// mutant is one mechanism with the edit that removes it. doc.go explains its text.
type mutant struct {
	name, file        string
	mechanism, breaks string
	old, fresh        string
	pkg               string // "" means that of file, or of the package that embeds it
	tests             []string
	hangs, race       bool
}

//go:embed lists/*.txt
var lists embed.FS

// mutants returns all mutants, list by list.
func mutants() ([]mutant, error) {
	var all []mutant
	files, err := lists.ReadDir("lists")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := lists.ReadFile("lists/" + f.Name())
		if err != nil {
			return nil, err
		}
		for entry := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
			m, err := parse(entry)
			if err != nil {
				return nil, fmt.Errorf("lists/%s: %w", f.Name(), err)
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// parse reads one entry. It is an error if something is missing or unknown.
func parse(entry string) (m mutant, err error) {
	var old, fresh []string
	for i, line := range strings.Split(entry, "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch {
		case i == 0:
			m.name, m.file = key, value
		case strings.HasPrefix(line, "-"):
			old = append(old, line[1:])
		case strings.HasPrefix(line, "+"):
			fresh = append(fresh, line[1:])
		case key == "removes":
			m.mechanism = value
		case key == "breaks":
			m.breaks = value
		case key == "fails":
			m.tests = strings.Fields(value)
		case key == "in":
			m.pkg = value
		case line == "hangs":
			m.hangs = true
		case line == "race":
			m.race = true
		default:
			return m, fmt.Errorf("%s: the line %q means nothing", m.name, line)
		}
	}
	m.old, m.fresh = strings.Join(old, "\n"), strings.Join(fresh, "\n")
	if m.file == "" || m.mechanism == "" || m.breaks == "" || len(m.tests) == 0 || m.old == m.fresh {
		return m, fmt.Errorf("%s: something is missing", m.name)
	}
	return m, nil
}

// folder returns the package whose tests are run.
func (m mutant) folder() string {
	if m.pkg != "" {
		return m.pkg
	}
	return strings.TrimSuffix(path.Dir(m.file), "/lua")
}

// apply returns the file's text with the edit made. It is an error if old does not occur exactly once: the test would
// be meaningless.
func (m mutant) apply(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("its old text occurs %d times in %s, not once", n, m.file)
	}
	return strings.Replace(string(text), m.old, m.fresh, 1), nil
}

// findRoot returns the folder of the library's go.mod.
func findRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/anteroom/anteroom").Output()
	return strings.TrimSpace(string(out)), err
}
