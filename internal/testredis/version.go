package testredis

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// aboutTimeout bounds what the program is asked about itself.
const aboutTimeout = 10 * time.Second

var versionPattern = regexp.MustCompile(`(Redis|Valkey) server v=(\S+)`)

// about is the product and version that the program states, for example "Redis" and "7.2.4".
var about = sync.OnceValues(func() (product, version string) {
	ctx, cancel := context.WithTimeout(context.Background(), aboutTimeout)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if m := versionPattern.FindSubmatch(out); m != nil {
		return string(m[1]), string(m[2])
	}
	return "", ""
})

// AtLeast reports whether the server has what came with that version of Redis, for example "6.2".
func AtLeast(version string) bool {
	_, own := about()
	return slices.Compare(numbers(own), numbers(version)) >= 0
}

func numbers(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		list = append(list, n)
	}
	return list
}

// Needs skips the test on a server older than that version of Redis, which lacks what.
func Needs(tb TB, version, what string) {
	tb.Helper()
	if product, own := about(); own != "" && !AtLeast(version) {
		tb.Skip(fmt.Sprintf("%s came with Redis %s, this is %s %s", what, version, product, own))
	}
}

// unknownTLS is what a server without TLS says of the first option that is about it.
var unknownTLS = regexp.MustCompile(`>>> 'tls-port [^\n]*\n+Bad directive`)

// lacksTLS reports whether a server did not start because it was built without TLS.
func lacksTLS(err error) bool {
	text := err.Error()
	return strings.Contains(text, "Failed finding TLS support") || unknownTLS.MatchString(text)
}
