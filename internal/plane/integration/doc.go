// Package integration holds the embedded control plane to what it promises: that it is a
// real one, that its nodes look alive and its Pods fare as they are told to, that the
// garbage collector knows new kinds at once, that any part of it can fail and come back,
// and that nothing is left of it at its end, however that comes.
//
// The control plane is a module of its own, which these tests know only by its binary.
package integration
