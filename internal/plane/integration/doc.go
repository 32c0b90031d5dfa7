// Package integration tests the embedded control plane:
//
//   - It is a real one. Its nodes are alive, and its Pods follow their annotations.
//   - The garbage collector knows new kinds at once, and failed syncs are retried soon.
//   - Any component can fail and come back.
//   - Nothing is left at its end, whatever ended it.
//
// The control plane is a module of its own. These tests use its binary only.
package integration
