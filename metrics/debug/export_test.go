package debug

// Unpaced removes p's pacing, for tests and benchmarks of the answers.
func (p *Page) Unpaced() { p.pace.share = 1 }
