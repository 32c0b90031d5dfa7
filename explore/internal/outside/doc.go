// Package outside is the way of an explored program to an external system, such as a database server: a TCP proxy that
// refuses, cuts and delays connections.
//
// Example: the third part of data that passes in a step cuts all connections, and they pass again afterwards.
//
//	p, err := outside.Listen("127.0.0.1:5432")
//	defer p.Close()
//	p.BeginStep()
//	injection := p.Inject(outside.Cut, 3)
//	…                              // the program connects to p.Address()
//	injection.HasHappened()
package outside
