package anteroom

import "testing"

// A recall is kept until the driver next waits, also where no driver has waited yet and
// there is no channel to put it into.
func TestRecall_IsKeptForTheDriver(t *testing.T) {
	var r recall
	r.tell()
	for _, when := range []string{"before the first wait", "after it"} {
		select {
		case <-r.channel():
		default:
			t.Errorf("told %s: forgotten", when)
		}
		select {
		case <-r.channel():
			t.Errorf("told once %s, and woken twice", when)
		default:
		}
		r.tell()
	}
}
