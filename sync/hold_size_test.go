package anteroom

import (
	"testing"
	"unsafe"

	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
)

// What a held lock consists of. Each bound is a size class of the allocator: one byte more
// costs 16 bytes of every lock that is held, and together they stay below a kibibyte with
// the places in maps and in the renewal's heap (BenchmarkHeld measures that).
func TestHeld_Sizes(t *testing.T) {
	for _, part := range []struct {
		name       string
		size, most uintptr
	}{
		{"Mutex", unsafe.Sizeof(Mutex{}), 48},
		{"lock.Key, with its queue.Synchronizer and its conversation", unsafe.Sizeof(lock.Key{}), 696},
		{"lock.Held", unsafe.Sizeof(lock.Held{}), 112},
		{"renewal.Lease", unsafe.Sizeof(renewal.Lease{}), 112},
		{"tenure, with its lock.Owner", unsafe.Sizeof(tenure{}), 160},
		{"Hold", unsafe.Sizeof(Hold{}), 48},
		{"sentinel", unsafe.Sizeof(sentinel{}), 24},
	} {
		if part.size > part.most {
			t.Errorf("%s has %d bytes, want at most %d", part.name, part.size, part.most)
		}
	}
}
