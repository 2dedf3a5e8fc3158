package anteroom

import "testing"

// A ring is kept until somebody waits, also where nobody has waited yet and there is no
// channel to put it into.
func TestBell_IsHeardLater(t *testing.T) {
	var b bell
	b.ring()
	for _, when := range []string{"before the first wait", "after it"} {
		select {
		case <-b.channel():
		default:
			t.Errorf("rung %s: not heard", when)
		}
		select {
		case <-b.channel():
			t.Errorf("rung once %s, and heard twice", when)
		default:
		}
		b.ring()
		b.ring()
	}
}
