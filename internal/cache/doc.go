// Package cache keeps the objects of streams, as bytes.
//
// An informer decodes every object that it receives, and keeps the decoded object. A [Store]
// keeps the JSON of the server, compressed against a dictionary made of other objects. Beside it is a
// small [Record], which is enough to match selectors, owners and predicates. So
//
//   - memory is a fraction of what the decoded objects take;
//   - every read is a private copy: [Object.Bytes] makes it on demand;
//   - an object that does not match is neither decompressed nor decoded: [Store.All] selects by
//     namespace, labels, owner and index on the records alone.
//
// A [Cache] holds the streams of a program. Parts of the program that use the same
// [wire.Stream] share one watch and one store, for as long as one of them has a [Subscription]:
//
//	subscription, err := c.Open(ctx, stream, func(change cache.Change) { … })
//	defer subscription.Close()
//	pod, ok := subscription.Store().Get(kube.Key{Namespace: "default", Name: "web-0"})
//
// A subscriber receives all objects, then Synced, then every change, without gap or repetition,
// whenever it joins. While it receives a change, its store stands still at that change.
//
// The stores answer the reads through [Cache.Handler]. Such a read is at least as new as every write
// through the handler. A read through [View.Handler] is also at least as new as every change that
// the streams of one controller have published. So a reconcile never reads a state that is older than
// what triggered it.
//
// No stream starts by itself: an object that no stream covers is read from the server.
//
// # How a change and a read flow
//
//	API server
//	    │ wire.Frame: one line of a watch
//	package follow: watcher, sequence, objectTracker
//	    │ follow.Change: what the line means for the stream
//	updater ─ database.Item, database.PackedObject ─► Store ◄──┐
//	    │ Change: the records before and after                 │ Object
//	publisher                                                  │
//	    │ Change                                  View.Handler ┤
//	Subscriber, such as a controller                   ▲       │ overlay.Entry
//	                                                   │       ▼
//	                                     reads and writes of   overlay: the answers to requests,
//	                                     the program           until all stores show them
//
// Beside this flow, package restoration watches for a server that was restored from a backup. While it doubts
// a store, reads go to the server.
package cache
