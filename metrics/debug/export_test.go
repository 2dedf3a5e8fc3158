package debug

// Unpaced lets p answer as often as it is asked, for tests and benchmarks of the answers.
func (p *Page) Unpaced() { p.pace.share = 1 }
