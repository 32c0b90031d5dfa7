// Package integration tests the embedded control plane: that it is a real one, that its nodes are
// alive and its Pods follow their annotations, that the garbage collector knows new kinds at once,
// that failed syncs are retried soon, that any component can fail and come back, and that nothing
// is left at its end, however it ends.
//
// The control plane is a module of its own. These tests use its binary only.
package integration
