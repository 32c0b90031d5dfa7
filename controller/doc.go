// Package controller calls a reconcile function for each object of a kind, whenever it may
// matter.
//
//	controller.New(reconcile,
//		controller.Owns[appsv1.Deployment](),
//	).Finalizer("webapp.example.com/cleanup", cleanup)
//
// A reconcile function makes the world as its object wants it. It is not told what
// happened, and must not need to know: it looks at what is, and does what is missing. It
// may be called at any time, also when nothing has changed, and again after it was
// interrupted anywhere. In exchange the controller sees to it that
//
//   - no object is reconciled by two workers at once; different objects are, eight at a
//     time by default; triggers that come meanwhile lead to exactly one more call;
//   - no call is made before everything that is watched is known;
//   - a read through the client is at least as new as every write through it, and an apply
//     or a status that would change nothing is not sent;
//   - errors are retried with growing intervals, each object by itself; conflicts quietly;
//     an error marked by [Terminal] only when the object changes;
//   - a panic is an error of that object;
//   - with a [Controller.Finalizer], the cleanup is called before the object goes, also if
//     the program was down when it was deleted.
//
// What a controller watches besides its own kind is an option: [Owns] for what its objects
// own, [WatchesReferenced] for what they name, [Watches] for anything else. Of all that, and of
// nothing else, objects are kept in memory, and reads of them make no request; lists can be
// narrowed by owner ([kube.OwnerIs]) and by indexes ([Index]).
//
// What it returns says when to look again: [RequeueAfter], or [Done] for the next change.
package controller
