//go:build !unix

package lettucecompat

import "net"

// isStale knows nothing here: a command that meets a connection which the server has closed is unknown, and not failed.
func isStale(net.Conn) bool { return false }
