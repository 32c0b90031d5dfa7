// Package ctrl lets programs of controller-runtime use yare, step by step.
//
// The first step changes two lines of main.go. The manager, its controllers, predicates, queues and webhooks stay as they
// are. They read from yare's cache, and write by yare's client:
//
//	bridge, err := ctrl.ForConfig(config)
//	…
//	mgr, err := manager.New(config, manager.Options{
//		NewCache:  bridge.NewCache,
//		NewClient: bridge.NewClient,
//	})
//
// The cache keeps the objects as compressed bytes. It decodes an object when somebody reads it, and for the event
// handlers. So it keeps no decoded objects.
//
// The second step makes the manager a part of a program of yare, by [Manager]: see there.
//
// # What is different
//
//   - A read is at least as new as each write by the client of the manager, without
//     EnableReadYourWritesConsistency. A read that the cache cannot answer at that moment asks the server.
//   - Get and List return copies. UnsafeDisableDeepCopy changes nothing.
//   - The object of an event belongs to its handler. Two handlers get two copies.
//   - Another object under the same name is a deletion and an addition, and no update.
//   - A Get of an object that the selectors of the cache do not select asks the server, and then returns NotFound.
//   - An object that does not fit its Go type is logged and left out. It does not stop its kind.
//   - A transform of the cache is applied whenever an object is decoded. It cannot save memory: the bytes of the
//     server are kept.
//   - The informers are a toolscache.SharedIndexInformer. Their store can only be read, and decodes for each read.
//   - The cache watches each representation of a kind by itself: whole objects, which typed and unstructured objects
//     share, and metadata.
//
// The options NewInformer and DefaultWatchErrorHandler, the indexers of client-go, and indexes of metadata are errors.
package ctrl
