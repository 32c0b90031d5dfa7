// Package watch turns list and watch into one ordered sequence of events, which survives
// everything that a server does.
//
//	for event, err := range watch.Events(ctx, kube.All[Book](client)) {
//		switch e := event.(type) {
//		case watch.Added[Book]:
//			…
//		case watch.Deleted[Book]:
//			…
//		}
//	}
//
// The sequence begins with an Added for each object that exists. Synced follows, and then one
// event for each change. The sequence ends when ctx ends, or when the consumer leaves the loop.
//
// [Events] decodes objects of one type. [Follow] returns the changes of one [kube.Stream] as raw
// bytes, for consumers that keep them. [WaitFor] waits for a state of one object.
//
// # What is guaranteed
//
//   - A watch that ends, breaks or falls silent is followed by a watch from the last resource
//     version that was seen. Bookmarks advance that version.
//   - A resource version that is too old (410 Gone, as an answer or in the stream), or that is
//     refused four times in a row for another reason, leads to a fresh list. The sequence shows
//     the difference: objects that vanished in the gap are Deleted, unchanged objects are not
//     mentioned, and another object under an old name is a deletion and an addition.
//   - The list comes as a stream where the server can do that (KEP-3157), and in pages
//     otherwise. A list that breaks off leaves nothing behind.
//   - An object that does not fit its Go type is reported, and its neighbours are served. An
//     object whose metadata cannot be read is reported, and is not missing from a list. If not
//     even its name can be read, that list reports no object as missing, and the next list
//     decides.
//   - Each stream has a back-off of its own, which only progress resets. An event,
//     a bookmark, and a watch that lasted for at least a second are progress. Silence is
//     neither progress nor a failure.
//   - A dead connection is found by HTTP/2 pings. Without pings it is found by missing bookmarks
//     after 150 seconds, or, if the watch has brought no bookmark, within five minutes.
//   - A healthy watch is the only request at rest.
//
// # A restored server
//
// When etcd is restored from a backup, resource versions go back. An API server does not refuse
// a watch from a version that it has not reached: it is silent until it reaches the version, and what
// happens in between is lost. Therefore a watch that was reopened after an unexpected end, and
// brings no new event for 12 seconds, is followed by one list of at most one object, its metadata
// only. Everything is listed again if the server's version is lower than the last one seen, or
// if the newest known object is older, is another one, has changed without an event, or is gone
// without a deletion, or if the object of the newest deletion is back.
//
// One stream finds a restoration earlier than another one. Package cache then asks, through a
// [Relister], for fresh lists of the streams that have seen more than the restored server has, and
// publishes the restoration to all subscribers, whose controllers reconcile all their objects.
//
// An answer to a read or a write that is older than an object that a store has shown proves a
// restoration too, and leads to a fresh list at once, at most once a minute.
//
// One case remains. The server has passed the last version seen before it is asked, and the
// newest change that was seen is also in the backup, or a new event came within the 12 seconds.
// Then the changes between the backup and the last version seen are not noticed until
// those objects change again, or until the next list. Whoever restores etcd avoids this
// with etcdutl snapshot restore --bump-revision and --mark-compacted, after which an API server
// answers old versions with 410 Gone.
//
// # What a new process may assume
//
// A process that starts sees at least what its predecessor wrote and was answered for. Lists,
// streamed or in pages, name no resource version, and least of all "0", which an API server
// answers from its own past. For a list without a version, an API server that lags behind etcd
// waits until it has caught up, or answers that the version is too large, and the list is repeated.
// A watch that is resumed on such a server is silent until the server has caught up. So no state
// is Synced that is older than the start of its list.
//
// What remains:
//
//   - Streams start at different versions. After all of them are Synced, one may show an object
//     before another one shows an older change. The absence of an object in one stream proves
//     nothing about another stream.
//   - A request of the predecessor may still be under way, if it did not wait for its answer. It
//     may be carried out after the list. Its change then comes as an event.
//   - A proxy or an aggregated API server that keeps a cache of its own, and answers lists from
//     that cache, breaks the guarantee.
package watch
