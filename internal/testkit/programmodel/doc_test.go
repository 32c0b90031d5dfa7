// Package programmodel holds the model of a whole program: several controllers with overlapping
// streams of the same kinds, against an API server that delays, freezes, cuts and refuses each
// stream by itself and is restored from a backup now and then, while users and strangers change
// what they reconcile. Everything random comes from a seed.
//
// In some runs the program stands by at first, or a second program stands by and takes over; lists come in small pages; the
// kind of the children is removed and comes back; a proxy answers 404 to everything for a while; a stream has a field
// selector; two parents want the same child by label; and one more controller has a kind that is forbidden, absent or
// undecodable.
//
// When everything has been delivered, the model requires:
//
//   - Every child is as its owner wants it, and what was to be deleted is gone.
//   - Every trigger for later led to a reconcile at its time or after, and every object was last
//     reconciled in its last state.
//   - No object was reconciled by two workers at once.
//   - Every read within a reconcile was at least as new as each change that the controller had
//     been shown when the reconcile began, and as the program's own writes.
//   - No controller was shown the deletion of an object that exists and that its stream selects.
//   - No object was read that the reconcile had deleted before the read.
//   - Only the program that leads reconciles, and the child of a parent that exists was taken by no other parent.
//   - A program at rest sends no request but watches, and runs no reconcile but resyncs.
//
// YARE_MODEL_RUNS is how many seeds are run, YARE_MODEL_SEED the first of them.
package programmodel
