package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one mechanism with the edit that removes it.
type mutant struct {
	// name is unique; -only searches it.
	name string
	// mechanism is what is removed, breaks is the effect on a user, both as in docs/generated/mutants.md.
	mechanism, breaks string
	// file is the source, by its path in the repository. old occurs in it exactly once and becomes fresh.
	file       string
	old, fresh string
	// pkg is the folder whose tests are run; "" means that of file, or of the package that embeds it.
	pkg string
	// tests are the tests that must fail, all of them.
	tests []string
	// hangs: the tests may also fail by hanging.
	hangs bool
	// race: run with the race detector, for mechanisms of memory order.
	race bool
}

// mutants returns all mutants, in the order of docs/generated/mutants.md.
func mutants() []mutant {
	return slices.Concat(queueMutants, renewalMutants, watchdogMutants, recoveryMutants, wireMutants,
		scriptMutants, scriptGuardMutants, stateMutants, lineMutants, conversationMutants, driverMutants, syncMutants, grantMutants, waitMutants, metricsMutants, execMutants, openMutants, dialectMutants)
}

// folder returns the package whose tests are run.
func (m mutant) folder() string {
	if m.pkg != "" {
		return m.pkg
	}
	return strings.TrimSuffix(path.Dir(m.file), "/lua")
}

// pattern returns the argument of go test -run.
func pattern(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

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

// findRoot returns the folder of the library's go.mod, upwards from the working directory.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if text, _ := os.ReadFile(filepath.Join(dir, "go.mod")); strings.HasPrefix(string(text), "module github.com/anteroom/anteroom\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the library's go.mod is not above the working directory")
		}
		dir = parent
	}
}
