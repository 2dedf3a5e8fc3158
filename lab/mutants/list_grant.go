package main

var grantMutants = []mutant{
	{
		name: "sync-token-stays", file: "sync/hold.go",
		mechanism: "a hold keeps the token with which its work was begun",
		breaks:    "the zero of a lost hold passes the check of a resource that nobody has written to yet",
		old:       "return token, token != 0\n",
		fresh:     "return token, token != 0 && h.err() == nil\n",
		tests:     []string{"TestAHoldKeepsItsToken"},
	},
	{
		name: "renewal-add-looks", file: "renewal/manager.go",
		mechanism: "a lease is added by what the clocks say now",
		breaks:    "a grant whose answer a suspension held up is admitted",
		old:       "now := m.clock.now() // a suspension while", fresh: "now := m.clock.present(m.Glance()) // a suspension while",
		tests: []string{"TestSuspended_WithinTheAcquire"},
	},
}
