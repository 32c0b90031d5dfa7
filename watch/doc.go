// Package watch turns list and watch into one ordered sequence of events, which goes on whatever a server
// does.
//
//	for event, err := range watch.Events(ctx, kube.Everywhere[Book](client)) {
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
// [Events] decodes objects of one type. [Until] waits for a state of one object. A controller follows the same
// sequence, and keeps the objects in its cache.
//
// # What is guaranteed
//
//   - A watch that ends, breaks or becomes silent is followed by a watch from the last seen resource version.
//     Bookmarks advance that version.
//   - A resource version that is too old (410 Gone, as an answer or in the stream) leads to a fresh list.
//     A version that is refused four times in a row for another reason does so too. The sequence shows
//     the difference: objects that are not in the list are Deleted, unchanged objects are not
//     mentioned, and another object under an old name is a deletion and an addition.
//   - The list comes as a stream where the server can do that (KEP-3157), and in pages
//     otherwise. After two streams in a row that the server has ended before the list was complete, the list
//     comes in pages too. A list that breaks off leaves nothing behind.
//   - An object that does not fit its Go type is reported, and the other objects are served. An object whose
//     metadata cannot be read is reported, and is not missing from a list. If not even its name can be read,
//     that list reports no object as missing, and the next list decides.
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
// a watch from a version that it has not reached. The watch is silent until the server reaches the version,
// and the changes until then are lost. Therefore a watch that was reopened after an unexpected end is
// probed if it brings no new event for 12 seconds: the metadata of at most one object are listed. Everything
// is listed again in each of these cases:
//
//   - The version of the server is lower than the last version of the stream.
//   - The newest known object is older or another one. It has changed without an event. It is gone without a
//     deletion.
//   - The object of the newest deletion exists.
//
// Example: the stream has reached version 120, and the server is restored to version 105. The list of the probe
// has a version below 120, so everything is listed again.
//
// One stream finds a restoration earlier than another one. The streams of a program's controllers then list again
// together: see docs/architecture.md.
//
// One case remains. No stream notices anything: the server has passed the last version of each stream before its probe,
// and its newest change is also in the backup, or a new event came within the 12 seconds.
// Then the streams do not show what was undone until
// those objects change again, or until the next list. Whoever restores etcd avoids this
// with etcdutl snapshot restore --bump-revision and --mark-compacted. After that an API server
// answers old versions with 410 Gone.
//
// # What a new process may assume
//
// A process that starts sees at least what its predecessor wrote and was answered for. Lists, streamed or in
// pages, name no resource version. In particular they do not name "0", because an API server answers such a
// list from its cache, however old. An API server can lag behind etcd. For a list without a version, the
// server then waits until it has caught up, or answers that the version is too large. Then the list is
// repeated. A watch that is resumed on such a server is silent until the server has caught up. So no state is
// Synced that is older than the start of its list.
//
// What remains:
//
//   - Streams start at different versions. After all of them are Synced, one may show an object
//     before another one shows an older change. The absence of an object in one stream proves
//     nothing about another stream.
//   - A request of the predecessor may still be under way, if it did not wait for its answer. It
//     may be carried out after the list. Its change then comes as an event.
//   - A proxy or an aggregated API server breaks the guarantee if it answers lists from a cache of its own.
package watch
