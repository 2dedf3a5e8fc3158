package anteroom

import (
	"testing"
	"unsafe"
)

// A Hold of a Mutex is no larger for the other kinds of locks: 160 bytes are a size class.
func TestTenure_Size(t *testing.T) {
	if size := unsafe.Sizeof(tenure{}); size > 160 {
		t.Errorf("a tenure has %d bytes", size)
	}
}
