package main

import (
	"bytes"
	"regexp"
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"--version"}, nil, &out, &errs)
	form := regexp.MustCompile(`^anteroom version \S+ \(go\S+( \S+)* \w+/\w+\)\nprotocol 3\n$`)
	if code != 0 || errs.Len() != 0 || !form.MatchString(out.String()) {
		t.Errorf("exit status %d, %q, %q", code, out.String(), errs.String())
	}
	for version, want := range map[string]string{"v1.2.3": `^v1\.2\.3 \(`, "": `^\(devel\) \(`, "(devel)": `^\(devel\) \(`} {
		if got := versionText(&debug.BuildInfo{Main: debug.Module{Version: version}}); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("module version %q: %q", version, got)
		}
	}
	if got := versionText(nil); !regexp.MustCompile(`^\(devel\) \(`).MatchString(got) {
		t.Errorf("without build information: %q", got)
	}
}
