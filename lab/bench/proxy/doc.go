// Package proxy delays the traffic between a client and a server, since a user's Redis is not on loopback.
//
//	client ── TCP ──► proxy, a process of its own ── TCP ──► redis-server
//	                  each piece of data waits OneWay, in each direction
//
// The delay is that of a longer wire: it is added to every piece of data, however many are in flight, so a round trip
// takes 2 × OneWay more and no bandwidth is lost. The proxy's own work (a few system calls for each piece) comes on
// top; the round trip through it is measured and printed with the results. It runs as a child, so that its processor
// time is not the client's; on a machine with few cores it still takes some from everybody.
//
//	I1  Nothing is delivered earlier than OneWay after it was read.
//	I2  On one connection nothing is lost, changed or reordered.
//	I3  A connection that is closed at one side is closed at the other, after the data in flight.
package proxy
