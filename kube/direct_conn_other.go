//go:build !linux || race

package kube

import "net"

// newDirectConn returns c. Only Linux has numbers of system calls that do not change. With the race detector
// newDirectConn returns c on Linux, too: a test and a server in one process are ordered by what they send, and the
// detector sees that order in the calls of package net alone.
func newDirectConn(c net.Conn) net.Conn { return c }
