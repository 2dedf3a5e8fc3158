package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// setupKeys are the keys of a result that are not figures.
type setupKeys struct {
	Scenario   string                 `json:"scenario"`
	Library    string                 `json:"library"`
	Goroutines int                    `json:"goroutines"`
	Processes  int                    `json:"processes"`
	Keys       int                    `json:"keys"`
	HoldUS     int64                  `json:"hold_us"`
	Fair       bool                   `json:"fair"`
	Rounds     int                    `json:"rounds"`
	Version    string                 `json:"version"`
	Settings   string                 `json:"settings"`
	Spread     map[string]*[2]float64 `json:"spread"`
}

var notFigures = []string{"scenario", "library", "goroutines", "processes", "keys", "hold_us", "fair", "rounds", "version", "settings", "spread"}

// UnmarshalJSON reads what MarshalJSON has written. Library.Local is not written. A missing spread means that both
// ends are the figure.
func (r *Result) UnmarshalJSON(data []byte) error {
	var k setupKeys
	if err := json.Unmarshal(data, &k); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*r = Result{
		Setup: Setup{
			Scenario: k.Scenario, Library: k.Library, Version: k.Version, Settings: k.Settings,
			Goroutines: k.Goroutines, Processes: k.Processes, Keys: k.Keys,
			Hold: time.Duration(k.HoldUS) * time.Microsecond, Fair: k.Fair,
		},
		Rounds: k.Rounds, Figures: Figures{}, Spread: map[Figure][2]float64{},
	}
	for name, raw := range all {
		if slices.Contains(notFigures, name) {
			continue
		}
		var v float64
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("%s of %s, %s: %w", name, k.Library, k.Scenario, err)
		}
		r.Figures[Figure(name)] = v
		r.Spread[Figure(name)] = [2]float64{v, v}
		if s := k.Spread[name]; s != nil {
			r.Spread[Figure(name)] = *s
		}
	}
	return nil
}

// ReadJSON reads results written by WriteJSON.
func ReadJSON(in io.Reader) ([]Result, error) {
	var results []Result
	if err := json.NewDecoder(in).Decode(&results); err != nil {
		return nil, err
	}
	return results, nil
}

// Merge returns the old results with the newly measured scenarios replaced. New scenarios come last.
func Merge(old, measured []Result) []Result {
	fresh := map[string][]Result{}
	for _, r := range measured {
		fresh[r.Scenario] = append(fresh[r.Scenario], r)
	}
	var all []Result
	for _, r := range old {
		anew, ok := fresh[r.Scenario]
		if !ok {
			all = append(all, r)
			continue
		}
		all = append(all, anew...)
		fresh[r.Scenario] = nil // in the place of the first one
	}
	for _, r := range measured {
		if fresh[r.Scenario] != nil {
			all = append(all, r)
		}
	}
	return all
}
