// Package queue decides which object a controller reconciles next.
//
// Triggers go in, rounds come out. Between the two stands one entry per key that has
// work to do, and these rules:
//
//   - One worker per key. A key that is being worked on is not handed out again until
//     Done; triggers that come meanwhile cause exactly one more round, after it.
//   - Earliest wins. A key has one next round, at the earliest time that anything asked
//     for. What asked for a later one is served by that round, which says what follows.
//   - A round that failed is followed by a wait. Only a fresh trigger ends it early, not
//     the echo of our own write.
//   - High overtakes Low, first come first served within each. While Low has work, at
//     least one of every five rounds is Low.
//   - Only work takes memory. A key that has nothing to do is not known.
package queue
