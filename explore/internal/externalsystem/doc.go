// Package externalsystem is the way of an explored program to an external system, such as a database server: a [Relay] that
// refuses, cuts and delays connections.
//
// Example: the third part of data that passes in a step cuts all connections, and they pass again afterwards.
//
//	r, err := externalsystem.Listen("127.0.0.1:5432")
//	defer r.Close()
//	r.BeginStep()
//	injection := r.Inject(externalsystem.Cut, 3)
//	…                              // the program connects to r.Address()
//	injection.HasHappened()
package externalsystem
