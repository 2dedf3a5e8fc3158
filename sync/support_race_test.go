//go:build race

package anteroom

// raceEnabled reports whether the race detector is on.
const raceEnabled = true
