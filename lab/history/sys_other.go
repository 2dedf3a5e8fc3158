//go:build !unix

package history

import (
	"errors"
	"os"
)

// No histories are recorded on this system: it has no clock that this package knows to be common to all processes.

func clockMonotonic() int64 { panic(errors.ErrUnsupported) }

func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func mapZeros(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return errors.ErrUnsupported }
