package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// protocolVersion is the version of what the library writes to Redis; the last section of the protocol's page says
// what a change of it means.
const protocolVersion = 3

// addVersionFlag makes root answer --version. cobra's own flag would also take -v. The text is not made with a template:
// text/template calls methods by name, so the linker would keep every method of go-redis.
func addVersionFlag(root *cobra.Command) {
	build, _ := debug.ReadBuildInfo() // nil for a program that was built without modules
	root.Version = versionText(build)
	root.Flags().Bool("version", false, "print the versions of the module and of the protocol")
}

// versionText returns one line each for the module and the protocol, of which cobra begins the first. A build from a work tree without version control
// has no module version.
func versionText(build *debug.BuildInfo) string {
	module := ""
	if build != nil {
		module = build.Main.Version
	}
	return fmt.Sprintf("%s (%s %s/%s)\nprotocol %d",
		cmp.Or(module, "(devel)"), runtime.Version(), runtime.GOOS, runtime.GOARCH, protocolVersion)
}
