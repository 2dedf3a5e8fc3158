package measure

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestReadJSON_IsWhatWasWritten(t *testing.T) {
	r := Summarize(Setup{
		Scenario: "s", Library: "l", Version: "v1", Settings: "so", Goroutines: 2, Processes: 3, Keys: 4, Hold: time.Millisecond, Fair: true,
	}, []Figures{{OpsPerS: 10, P50US: 1.5}, {OpsPerS: 30, P50US: 1.5, "other": 7}, {OpsPerS: 20, P50US: 1.5}})
	var text bytes.Buffer
	if err := WriteJSON(&text, []Result{r}); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON(&text)
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], r) {
		t.Errorf("read %+v, %v\nwrote %+v", got, err, r)
	}
	if _, err := ReadJSON(strings.NewReader(`[{"scenario":"s","ops_per_s":"many"}]`)); err == nil {
		t.Error("a figure that is no number was read")
	}
}

// Of a duplicate key only the last one would be read.
func TestResult_NoFigureIsCalledLikeTheSetup(t *testing.T) {
	r := Summarize(Setup{Scenario: "s", Library: "l"}, []Figures{{"goroutines": 3}})
	if err := WriteJSON(new(bytes.Buffer), []Result{r}); err == nil {
		t.Error("a figure named like the setup's goroutines was written")
	}
}

func TestMerge(t *testing.T) {
	of := func(names ...string) (rs []Result) {
		for _, name := range names {
			scenario, library, _ := strings.Cut(name, "/")
			rs = append(rs, Result{Setup: Setup{Scenario: scenario, Library: library}})
		}
		return rs
	}
	got := Merge(of("a/1", "b/1", "b/2", "c/1"), of("d/1", "b/3", "b/4", "b/5"))
	if want := of("a/1", "b/3", "b/4", "b/5", "c/1", "d/1"); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
