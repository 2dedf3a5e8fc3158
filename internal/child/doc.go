// Package child runs this program again, as a process that has a role.
//
//	parent ── Start(role, plan) ──► the same program ── Run(roles) ──► role(link, plan)
//	  Send, Receive  ◄──── lines of JSON, by standard input and output ────►  Receive, Send
//
// It is how tests, laboratories, the bench and the demonstration get processes that can be
// stopped, killed and measured apart from themselves.
//
//	I1  A child ends with its parent, however that ends: the kernel ends it, or its
//	    standard input does.
//	I2  A child ends by itself when its bound is over, and at Stop at the latest, by
//	    process id.
//	I3  What a role returns as an error, its parent is told.
package child
