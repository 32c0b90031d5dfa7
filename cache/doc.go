// Package cache keeps the objects of streams, as bytes.
//
// An informer decodes every object that it is sent, and keeps the decoded form. A [Store]
// keeps what the server sent, compressed against a dictionary made from its neighbours,
// beside a small [Record]: enough to match selectors, owners and predicates. Then
//
//   - memory is a fraction of what the decoded objects take;
//   - every read is a private copy: [Object.Bytes] makes it, when it is asked for, and its
//     caller can do with it what he likes;
//   - what does not match is never decompressed, let alone decoded: [Store.All] selects by
//     namespace, labels, owner and index on the records alone.
//
// [Cache] are the streams of a program. A [kube.Stream] that several parts of the program
// want is one watch and one store, for as long as one of them has a [Subscription]:
//
//	subscription, err := caches.Open(ctx, stream, func(c cache.Change) { … })
//	defer subscription.Close()
//	pod, ok := subscription.Store().Get(kube.Key{Namespace: "default", Name: "web-0"})
//
// A subscriber is told all that is there, then that it is synced, then all that changes,
// without gap or repetition, whenever it joins. While it is told something, its store
// stands still at just that change.
//
// Reads through [Cache.Handler] are answered by the stores, and are at least as new as
// every write through it.
//
// Nothing starts by itself: what no stream covers is read from the server.
package cache
