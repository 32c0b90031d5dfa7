// Package controller calls a reconcile function for each object of a kind, whenever something
// has changed that may matter to the object.
//
//	controller.New(reconcile,
//		controller.Owns[appsv1.Deployment](),
//	).Finalizer("webapp.example.com/cleanup", cleanup)
//
// A reconcile function compares the cluster with the state that the object asks for, and makes the missing changes. It
// must not depend on what happened. It may be called at any time, also when nothing has changed, and again after it was
// interrupted anywhere. It returns when the next reconcile is due: [RequeueAfter], or [Done] for the next change. In
// exchange the controller guarantees that
//
//   - an object has one worker at a time. Different objects are reconciled concurrently, eight by default. Triggers
//     that come during a reconcile lead to exactly one more;
//   - no reconcile starts before all watched streams are synced;
//   - a read through the client is at least as new as every write through it, and an apply or a status that would
//     change nothing is not sent;
//   - errors are retried with growing intervals, each object by itself, and an error marked by [Terminal] only after a
//     change. Conflicts are retried quietly. A panic is an error of that object;
//   - with a [Controller.Finalizer], the cleanup is called before the object goes, also if the program was down when
//     the object was deleted. The object goes only after the cleanup has returned [CleanupDone]. Without one, no
//     function is called for an object that is being deleted.
//
// Options add what a controller watches besides its own kind: [Owns] for the children of its objects,
// [WatchesReferenced] for the objects that they name, [Watches] for anything else, [OwnsByLabel] for children in other
// namespaces. [When] and [Changed] decide which changes matter. Watched objects are kept in memory, and reads of them
// make no request. No other objects are kept.
//
// A function that depends on the time reads it by [Now]. A test can move that time: see package yaretest.
package controller
