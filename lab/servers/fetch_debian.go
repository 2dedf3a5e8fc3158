package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// keyring signs all of Debian's suites. apt checks the signatures, so a package needs no digest here.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// debian unpacks packages of a suite of Debian, with the libraries that the server needs, the C library among them. The
// system's own lists and packages stay as they are.
func debian(suites, packages string) getter {
	return func(ctx context.Context, dir string) error {
		if err := unpackDebian(ctx, dir, suites, packages); err != nil {
			return err
		}
		for _, product := range []string{"valkey", "redis"} { // Valkey's tools come with links of the other name
			program := filepath.Join("root", "usr", "bin", product+"-server")
			if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
				return wrapDebian(dir, program)
			}
		}
		return errors.New("the packages have no server")
	}
}

// wrapDebian starts the program with the unpacked libraries, by the unpacked loader if there is one.
func wrapDebian(dir, program string) error {
	const libraries = "$here/root/lib/x86_64-linux-gnu:$here/root/usr/lib/x86_64-linux-gnu"
	if loader, err := find(dir, "ld-linux-x86-64.so.2"); err == nil {
		return wrap(dir, "", `"$here/`+loader+`"`, "--library-path", `"`+libraries+`"`, `"$here/`+program+`"`)
	}
	return wrap(dir, `LD_LIBRARY_PATH="`+libraries+"\" ", `"$here/`+program+`"`)
}

// unpackDebian unpacks packages under dir/root.
func unpackDebian(ctx context.Context, dir, suites, packages string) error {
	apt := filepath.Join(dir, "apt")
	defer os.RemoveAll(apt)
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(apt, d), 0o755); err != nil {
			return err
		}
	}
	var sources strings.Builder
	for suite := range strings.FieldsSeq(suites) {
		label := "Debian"
		if strings.HasSuffix(suite, "-security") {
			label = "Debian-Security"
		}
		from, err := archive(ctx, label)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sources, "deb [signed-by=%s] %s %s main\n", keyring, from, suite)
	}
	settings := fmt.Sprintf(`Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
`, apt)
	for name, text := range map[string]string{"sources.list": sources.String(), "status": "", "apt.conf": settings} {
		if err := os.WriteFile(filepath.Join(apt, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	get := func(args ...string) error {
		return run(ctx, apt, "env", append([]string{"APT_CONFIG=" + filepath.Join(apt, "apt.conf"), "apt-get", "-q"}, args...)...)
	}
	if err := errors.Join(get("update"), get(append([]string{"download"}, strings.Fields(packages)...)...)); err != nil {
		return err
	}
	packed, err := filepath.Glob(filepath.Join(apt, "*.deb"))
	for _, p := range packed {
		err = errors.Join(err, run(ctx, dir, "dpkg-deb", "-x", p, "root"))
	}
	return err
}

// archive returns where this system takes Debian's packages of that label from.
func archive(ctx context.Context, label string) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages", "Label: "+label).Output()
	if err != nil {
		return "", fmt.Errorf("apt-get indextargets: %w", err)
	}
	first, _, _ := bytes.Cut(out, []byte("\n"))
	if len(first) == 0 {
		return "", fmt.Errorf("this system has no package source with the label %q", label)
	}
	return string(first), nil
}
