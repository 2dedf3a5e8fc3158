//go:build race

package anteroom

// raceEnabled tells whether the race detector is on.
const raceEnabled = true
