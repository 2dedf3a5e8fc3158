//go:build !linux

package renewal

import "time"

// suspended is not known here: after a suspension the next round of the loop, and with
// it the next renewal, finds out (jumpAfter).
func suspended() time.Duration { return 0 }
