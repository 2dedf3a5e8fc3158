package main

import "testing"

// The system on which the tests of exec run has all abilities, so that those tests show all promises.
func TestExec_X2_LinuxLacksNothing(t *testing.T) {
	a := systemAbilities()
	if err := a.refusal(); err != nil || a.shortfall() != "" {
		t.Errorf("refusal %v, shortfall %q", err, a.shortfall())
	}
}
