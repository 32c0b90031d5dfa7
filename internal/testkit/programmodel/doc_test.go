// Package programmodel holds the model of a whole program: several controllers with overlapping
// streams of the same kinds, against an API server that delays, freezes, cuts and refuses each
// stream by itself and is restored from a backup now and then, while users and strangers change
// what they reconcile. Everything random comes from a seed.
//
// When everything has been delivered, the model requires:
//
//   - Every child is as its owner wants it, and what was to be deleted is gone.
//   - Every trigger for later led to a reconcile at its time or after, and every object was last
//     reconciled in its last state.
//   - No object was reconciled by two workers at once.
//   - Every read within a reconcile was at least as new as each change that the controller had
//     been shown when the reconcile began, and as the program's own writes.
//   - A program at rest sends no request but watches, and runs no reconcile but resyncs.
//
// YARE_MODEL_RUNS is how many seeds are run, YARE_MODEL_SEED the first of them.
package programmodel
