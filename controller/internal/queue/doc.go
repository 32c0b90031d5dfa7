// Package queue decides which object a controller reconciles next.
//
// Triggers go in, reconciles come out. The queue has one entry per key that has work to do. These
// rules hold:
//
//   - One worker per key. A running key is not handed out again until Done. Triggers that come
//     meanwhile cause exactly one more reconcile, after it.
//   - Earliest wins. A key has one next reconcile, at the earliest time that a trigger, a requeue
//     or a retry asks for. The outcome of that reconcile replaces a later requeue or retry. A
//     delayed trigger stays until its time has come.
//   - A failed reconcile is followed by a back-off. A High trigger ends the back-off early. Low
//     triggers and echoes do not, and a possible echo does once.
//   - High overtakes Due, and Due overtakes Low. Within a class the first comes first. While Low
//     has work, at least one of every five reconciles is Low; while Due has work, at least one of
//     every three that are not Low is Due.
//   - Only work takes memory. A key that has nothing to do is not in the queue.
package queue
