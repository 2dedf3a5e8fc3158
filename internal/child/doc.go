// Package child runs this program again as a process with a role.
//
//	parent ── Start(role, plan) ──► the same program ── Run(roles) ──► role(link, plan)
//	  Send, Receive  ◄──── lines of JSON, by standard input and output ────►  Receive, Send
//
// Tests, laboratories, the bench and the demonstration use it for processes that can be stopped, killed and measured
// separately.
//
//	I1  A child ends with its parent, however that ends: the kernel ends it, or the end of its standard input does.
//	I2  A child ends by itself when its bound has passed, and at Stop at the latest, by process id.
//	I3  An error returned by a role is reported to its parent.
package child
