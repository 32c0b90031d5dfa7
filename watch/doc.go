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
// The sequence begins with what is there, as Added; then comes Synced; then whatever
// happens. It ends when ctx does, or when the loop is left. In between it sees to it that
//
//   - a watch that ends, breaks or falls silent is taken up where it was, by the last
//     resourceVersion seen, which bookmarks move along;
//   - a resourceVersion that is too old (410 Gone, as an answer or in the stream) leads to
//     a fresh list, of which only the difference is told: what vanished in the gap is
//     Deleted, what did not change is not mentioned, and another object under an old name
//     is a deletion and an addition;
//   - the list comes as a stream where the server can do that (KEP-3157), else in pages;
//     one that is broken off leaves nothing behind;
//   - an object that does not fit its Go type is reported, and its neighbours are served;
//   - failures back off, each stream by itself, and only real progress resets that.
//
// [Events] is for one type, decoded. [Follow] is the same for one [kube.Stream] over raw
// bytes, for those who keep them.
package watch
