package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/yare-go/yare/controller/internal/adoption"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Option configures a controller: see [New]. A [Permission] is an option too.
type Option interface{ applyTo(s *settings) }

type optionFunc func(*settings)

func (f optionFunc) applyTo(s *settings) { f(s) }

// settings are what the options of a controller set. They do not depend on the type of the objects.
type settings struct {
	name    string
	manager string
	// formerManagers are names that manager had in earlier releases, and formerPrefixes holds the prefixes of
	// [FormerMetadata].
	formerManagers, formerPrefixes []string
	// newMover makes the handler that moves ownership from the former managers. It is nil without former managers, so
	// that other programs do not contain the code of the handler.
	newMover func(view adoption.View, log *slog.Logger, former, prefixes, labels []string) ownershipMover
	// quiet is the quiet time of [Debounce], or 0.
	quiet time.Duration
	// pausedBy is the annotation of [Paused], or empty.
	pausedBy    pauseAnnotation
	concurrency int
	timeout     time.Duration
	grace       time.Duration
	// reconciled is the reconciled kind.
	reconciled watchedKind
	// watched are the other kinds whose changes trigger reconciles.
	watched  []*watchedKind
	emitters []emitter
	onResult []func(Result)
	onGone   []func(kube.Key)
	// permissions holds the permissions that the author has declared.
	permissions []Permission
	// cancelsDeleted is true with [CancelDeleted].
	cancelsDeleted bool
	// reconcilesDeleting is true with [ReconcileDeleting].
	reconcilesDeleting bool
	errs               []error
}

// reject records why the controller is not valid. A nil err is ignored.
func (s *settings) reject(err error) {
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

// Name sets the name of the controller in logs and metrics. Controllers of one program need different names. A release
// that changes the name keeps the field manager: see [FieldManager]. Default: the kind in lower case.
func Name(name string) Option { return optionFunc(func(s *settings) { s.name = name }) }

// FieldManager sets the field manager of the controller's writes: see
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers. It must differ
// from the field managers of other programs, and stay the same over time: an apply removes only
// fields that the same field manager applied before. It has at most 128 printable characters.
// Default: the kind in lower case and its group, such as database.example.com; for a kind of the core group, the kind
// followed by -operator. Two controllers of one kind need different field managers, and so do two programs that
// reconcile one kind of somebody else, such as Pods.
//
// A program that changes the field manager names the earlier one in [FormerFieldManagers]. Otherwise the fields of the
// earlier field manager stay in the objects for ever.
func FieldManager(name string) Option {
	return optionFunc(func(s *settings) { s.manager = name })
}

// FormerFieldManagers names the field managers that the controller, or a program in its place, had in earlier releases.
// The fields that they own move to the field manager of the controller before its next apply, so that the apply removes
// what it does not contain. Fields move in children, and in the status of the reconciled object. An object is a child
// if it has an owner reference to the reconciled object, or a label of [OwnsByLabel]. Fields of applies and of updates
// move. The name before-first-apply stands for the fields that were there before the first apply.
//
// Never moved are finalizers, owner references to other objects, the fields of other subresources, and fields that were
// written in another API version, which are logged. A label or annotation of an update moves only if the apply names
// its key, or if its key has a prefix of [FormerMetadata]. The log has the fields that the apply removes, once for each
// kind. After a rollback to the earlier release the fields of both releases stay: see
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
//
// A former field manager proves nothing about an object without an owner, unless it has applied the object: see
// [kube.ErrForeignChild]. An object that it has created or updated does not count, because many programs write so under
// names such as manager.
//
// The option needs the permission to patch the reconciled objects. It can be removed from the program once every
// object has been reconciled.
func FormerFieldManagers(names ...string) Option {
	return optionFunc(func(s *settings) {
		if slices.Contains(names, "") {
			s.reject(errors.New("a former field manager is empty: give controller.FormerFieldManagers the names that were used"))
		}
		s.formerManagers = append(s.formerManagers, names...)
		s.newMover = func(view adoption.View, log *slog.Logger, former, prefixes, labels []string) ownershipMover {
			return adoption.NewMover(view, log, former, prefixes, labels)
		}
	})
}

// FormerMetadata names prefixes of the keys of labels and annotations, such as "database.example.com/". The labels and
// annotations with such a key move from the former field managers too, although the applies do not name them. So the
// next apply removes them. See [FormerFieldManagers].
func FormerMetadata(prefixes ...string) Option {
	return optionFunc(func(s *settings) {
		if slices.Contains(prefixes, "") {
			s.reject(errors.New("a prefix of controller.FormerMetadata is empty, so that labels of everybody would move: name the domain of the program's own keys"))
		}
		s.formerPrefixes = append(s.formerPrefixes, prefixes...)
	})
}

// Concurrency sets how many objects are reconciled at once. Default: 8.
func Concurrency(n int) Option {
	return optionFunc(func(s *settings) {
		if n < 1 {
			s.reject(fmt.Errorf("the concurrency %d is not positive: 1 is one object after the other", n))
		}
		s.concurrency = n
	})
}

// ShutdownGrace sets how long running calls may go on when the program is asked to end. Then
// their context ends. Default: 15 s, so that the whole program ends within 25 s:
// a Pod has 30 s by default (terminationGracePeriodSeconds).
func ShutdownGrace(d time.Duration) Option {
	return optionFunc(func(s *settings) {
		if d < 0 {
			s.reject(fmt.Errorf("the shutdown grace %s is negative: 0 ends calls at once", d))
		}
		s.grace = d
	})
}

// Timeout ends the context of a reconcile or cleanup that has not returned after d. The call then
// counts as failed. A call that ignores its context keeps its object and its worker until it returns.
// Such calls are logged. Default: no timeout; the log warns of a call that has been running for five
// minutes.
func Timeout(d time.Duration) Option {
	return optionFunc(func(s *settings) {
		if d <= 0 {
			s.reject(fmt.Errorf("the timeout %s is not positive: leave controller.Timeout out for none", d))
		}
		s.timeout = d
	})
}

// Debounce holds back the triggers of an object until none has come for quiet, so that a burst of
// changes leads to one reconcile. No trigger is held back for longer than ten times quiet. [Result]
// names the last cause of a burst. Deletions are held back too. Initial lists, resyncs, delayed triggers,
// requeues and retries are not held back. In tests, quiet is real time. By default nothing is held back:
// the changes during a reconcile lead to one more reconcile anyway.
func Debounce(quiet time.Duration) Option {
	return optionFunc(func(s *settings) {
		if quiet <= 0 {
			s.reject(fmt.Errorf("the quiet time %s of controller.Debounce is not positive: leave it out for none", quiet))
		}
		s.quiet = quiet
	})
}

// OnResult calls f with the result of every reconcile and cleanup, in the worker's goroutine,
// before the object can be reconciled again. A panic in f is logged and changes nothing.
func OnResult(f func(Result)) Option {
	return optionFunc(func(s *settings) {
		if f == nil {
			s.reject(errors.New("the function for results is nil: leave controller.OnResult out"))
			return
		}
		s.onResult = append(s.onResult, f)
	})
}

// OnGone calls f with the key of an object of the reconciled kind when the object is gone, or no longer
// matches the selectors of [Reconciled]. It is for state of the process that belongs to objects, such as a
// connection. f is called in the worker's goroutine: no reconcile of that key runs meanwhile. A panic
// in f is logged and changes nothing.
//
// OnGone is a best effort. f is not called for an object that is deleted while the program is down. It
// is not called either if another object of the same name is there when the controller looks. f may be
// called more than once, and for a key that never had an object. What must be done for each deleted
// object belongs in the cleanup of a [Controller.Finalizer].
func OnGone(f func(kube.Key)) Option {
	return optionFunc(func(s *settings) {
		if f == nil {
			s.reject(errors.New("the function for objects that are gone is nil: leave controller.OnGone out"))
			return
		}
		s.onGone = append(s.onGone, f)
	})
}

// CancelDeleted ends the context of a running reconcile when the deletion of its object begins, or the
// object stops matching the selectors of [Reconciled]. An error of that reconcile counts as no failure. The cleanup
// starts once the reconcile has returned. CancelDeleted is for reconciles that take long or wait. By default a
// reconcile is not interrupted. A cleanup is never interrupted.
func CancelDeleted() Option { return optionFunc(func(s *settings) { s.cancelsDeleted = true }) }

// ReconcileDeleting calls the reconcile function also for objects that are being deleted and have no finalizer of the
// controller. Their DeletionTimestamp is set. It is for objects that end slowly, such as Pods, and for finalizers that
// the reconcile function handles itself. The controller adds no finalizer because of it. An object may be gone before
// the function sees its deletion. An object with the [Controller.Finalizer] is cleaned up instead.
func ReconcileDeleting() Option { return optionFunc(func(s *settings) { s.reconcilesDeleting = true }) }

// Reconciled restricts the reconciled objects, and which of their changes matter. With a [Controller.Finalizer], an
// object that has the finalizer and stops matching the selectors is cleaned up like a deleted object, and its
// finalizer is removed. This includes objects that stopped matching while the program was down. Therefore a
// finalizer belongs to one selection: programs that divide the objects of a kind by selectors need finalizers
// of different names.
func Reconciled(options ...KindOption) Option {
	return optionFunc(func(s *settings) { s.reject(s.reconciled.apply(options)) })
}

// Kind names the kind of a source whose Go type stands for any kind: unstructured.Unstructured, or
// metav1.PartialObjectMetadata, of which only the metadata is watched and cached. Kind is an error for a
// Go type with a kind of its own. For the reconciled kind, Kind is given to [Reconciled]:
//
//	controller.New(func(ctx context.Context, u *unstructured.Unstructured, c *kube.Client) (controller.Action, error) { … },
//		controller.Reconciled(controller.Kind(certificates)),
//	)
func Kind(r wire.Resource) KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.namedResource = &r })
}

// Select watches only the objects that match all selectors. The cache then answers a list whose selectors imply these,
// such as a list by Label("app", "web") and Label("tier", "front") where Label("app", "web") is watched. It answers a
// get of an object that matches. Every other list and get of the kind is a request, and an error in a map function. The
// log names such a list once.
func Select(selectors ...kube.Selector) KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.selectors = append(w.selectors, selectors...) })
}

// When restricts the changes that matter: all predicates must return true for a change. [Changed] takes a
// predicate on whole objects. For the reconciled kind, the beginning of a deletion and the deletion itself
// always count, whatever the predicates return: the cleanup of an object must run.
func When(predicates ...Predicate) KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.predicates = append(w.predicates, predicates...) })
}

// Index adds indexes to the cache of the watched kind. Lists that select by [kube.Index.Is] then do not
// look at every object. An index takes memory for every object, and each change costs a call of its
// function. An index of Secrets needs [KeepSecrets].
func Index(indexes ...*kube.Index) KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.indexes = append(w.indexes, indexes...) })
}

// IndexLabels adds indexes of these labels to the cache of the watched kind. Lists that select by the
// value of one of these labels then do not look at every object.
func IndexLabels(keys ...string) KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.labelIndexes = append(w.labelIndexes, keys...) })
}

// InNamespaces watches the kind in these namespaces, and nowhere else, whatever namespaces the program
// is narrowed to. It is for a source beside kinds that are watched in the whole cluster:
//
//	controller.Watches(keys, controller.InNamespaces("kube-system"))
//
// With [InOwnNamespace] the program's own namespace is added.
func InNamespaces(namespaces ...string) KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.isNarrowed, w.namespaces = true, append(w.namespaces, namespaces...) })
}

// InOwnNamespace watches the kind, such as the kind of the program's configuration, in the namespace of
// the program ([Runtime]), and nowhere else.
func InOwnNamespace() KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.isNarrowed, w.isInOwnNamespace = true, true })
}

// IfServed watches a kind that the server need not serve, such as the custom resource of another
// program. While the server does not serve the kind, the source is synced and has no objects. Discovery
// decides that, so no right on CustomResourceDefinitions is needed. An error of the discovery does not
// mean that the kind is absent. An unsynced source then waits. When the server stops serving the kind,
// the objects count as deleted. When the server begins to serve the kind, which is checked every 30 to
// 45 s, the kind is watched. A write of the kind in the meantime is an error: see [kube.IsNoResource].
// Without IfServed a controller does not start before the kind is served.
func IfServed() KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.ifServed = true })
}

// SkipOwnStatus leaves out the reconcile that follows when a reconcile has written the status of its object. It is an
// option of [Reconciled], for reconciles that are dear, such as those that ask an external system. By default each
// write of the status leads to one more reconcile, which finds nothing to do.
//
// A change is left out only if it certainly is the write of the status by this very reconcile, which named the replaced
// resource version. The stored status must equal the status that was sent, and the watch must have shown the replaced
// version before. So a change of anything else leads to a reconcile as before. The reconcile must end without an
// error. Changes by cleanups are not left out.
//
// A reconcile that decides something by its own former status then does so when it is called for another reason.
func SkipOwnStatus() KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.skipsOwnStatus = true })
}

// KeepSecrets caches the contents of watched Secrets. By default only their metadata is
// cached, and every read of a whole Secret is live. An apply is still skipped if it
// repeats the last one and the Secret has not changed since; its result is the applied
// Secret with the metadata of the cache.
func KeepSecrets() KindOption {
	return kindOptionFunc(func(w *watchedKind) { w.keepSecrets = true })
}
