package pace

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFactor_IsTheLargestOfTheLastSeconds: a load that comes and goes still counts for a while, up to a limit.
func TestFactor_IsTheLargestOfTheLastSeconds(t *testing.T) {
	defer func() { measured.factor = 0 }()
	measured.at, measured.factor = time.Now(), 7
	if f, d := Factor(), Scale(time.Second); f != 7 || d != 7*time.Second {
		t.Errorf("a fresh measurement of 7: %v, %v", f, d)
	}
	measured.at = time.Now().Add(-halved / 2)
	if f := Factor(); f < 4 {
		t.Errorf("%v: a factor that was seen a moment ago is forgotten", f)
	}
	measured.at, measured.factor = time.Now().Add(-10*halved), most+1
	if f := Factor(); f < 1 || f > most {
		t.Errorf("factor %v", f)
	}
}

// TestFactor_MeasuresWork: nothing is remembered, so the factor is what the work takes now.
func TestFactor_MeasuresWork(t *testing.T) {
	defer func() { measured.factor = 0 }()
	measured.factor = 0
	begin := time.Now()
	f := Factor()
	if took := time.Since(begin); f < 1 || f > max(1, float64(took)/float64(idle)) {
		t.Errorf("factor %v of work that takes %v at most", f, took)
	}
}

func TestWithin(t *testing.T) {
	measured.at, measured.factor = time.Now().Add(time.Hour), 2
	defer func() { measured.factor = 0 }()
	for took, want := range map[time.Duration]bool{time.Second: true, 2 * time.Second: true, 2*time.Second + 1: false} {
		if got := Within(took, time.Second); got != want {
			t.Errorf("%v: %v", took, got)
		}
	}
}
