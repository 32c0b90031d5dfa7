package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// Option is what a controller has besides its reconcile function.
type Option func(*settings)

// settings are what is the same for controllers of all types.
type settings struct {
	name    string
	manager string
	// formerManagers are names that manager had in earlier releases.
	formerManagers []string
	concurrency    int
	timeout        time.Duration
	grace          time.Duration
	self           source // the reconciled kind: its selectors and predicates
	sources        []source
	custom         []Source
	onResult       []func(Result)
	errs           []error
}

func (s *settings) wrong(err error) {
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

// Name tells this controller from others in logs and metrics, and gives the default of its
// field manager. Default: the kind in lower case.
func Name(name string) Option { return func(s *settings) { s.name = name } }

// FieldManager is the name under which the controller's writes are recorded. It must stay
// the same over time, and differ between controllers that apply the same objects. Default:
// the controller's name with -operator behind it.
func FieldManager(name string) Option { return func(s *settings) { s.manager = name } }

// FormerFieldManagers names the field managers that the controller had in earlier releases. An
// object in which one of them has fields counts as a child that this controller applied: see
// [ErrForeignChild].
func FormerFieldManagers(names ...string) Option {
	return func(s *settings) {
		if slices.Contains(names, "") {
			s.wrong(errors.New("a former field manager is empty: give controller.FormerFieldManagers the names that were used"))
		}
		s.formerManagers = append(s.formerManagers, names...)
	}
}

// Concurrency is how many objects are reconciled at once. Default: 8.
func Concurrency(n int) Option {
	return func(s *settings) {
		if n < 1 {
			s.wrong(fmt.Errorf("the concurrency %d is not positive: 1 is one object after the other", n))
		}
		s.concurrency = n
	}
}

// ShutdownGrace is how long calls that are under way may go on when the program is asked
// to end; then their context ends. Default: 15 s, so that the whole program ends within 25 s:
// a Pod has 30 s by default (terminationGracePeriodSeconds).
func ShutdownGrace(d time.Duration) Option {
	return func(s *settings) {
		if d < 0 {
			s.wrong(fmt.Errorf("the shutdown grace %s is negative: 0 ends calls at once", d))
		}
		s.grace = d
	}
}

// Timeout ends the context of a reconcile or cleanup that has not returned after d. The call
// then counts as failed. A call that ignores its context keeps its object and its worker until
// it returns, and the log says so. Default: no timeout; the log warns of a call that has been
// running for five minutes.
func Timeout(d time.Duration) Option {
	return func(s *settings) {
		if d <= 0 {
			s.wrong(fmt.Errorf("the timeout %s is not positive: leave controller.Timeout out for none", d))
		}
		s.timeout = d
	}
}

// OnResult calls f with the result of every reconcile and cleanup, in the worker's goroutine,
// before the object can be reconciled again. A panic in f is logged and changes nothing.
func OnResult(f func(Result)) Option {
	return func(s *settings) {
		if f == nil {
			s.wrong(errors.New("the function for results is nil: leave controller.OnResult out"))
			return
		}
		s.onResult = append(s.onResult, f)
	}
}

// For restricts which objects are reconciled, and which of their changes matter. With a
// [Controller.Finalizer], an object that has the finalizer and stops matching the selectors is
// cleaned up as a deleted object is, and its finalizer is removed. So is an object that stopped
// matching while the program was down. Therefore a finalizer belongs to one selection: programs
// that divide the objects of a kind by selectors need finalizers of different names.
func For(options ...SourceOption) Option {
	return func(s *settings) { s.wrong(s.self.narrow(options)) }
}

// SourceOption narrows what is watched.
type SourceOption func(*source)

func (s *source) narrow(options []SourceOption) error {
	for _, option := range options {
		if option == nil {
			return errors.New("a source option is nil: leave it out")
		}
		option(s)
	}
	for _, x := range s.indexes {
		if err := x.CheckResource(s.kind.Resource); err != nil {
			return err
		}
		if s.metadataOnly {
			return fmt.Errorf("the index %q looks at whole objects, and only the metadata of %s is watched", x, s.kind.Resource)
		}
	}
	if slices.ContainsFunc(s.predicates, func(p Predicate) bool { return p == nil }) {
		return errors.New("a predicate is nil: leave it out, because all changes matter without one")
	}
	return nil
}

// Select watches only the objects that match.
func Select(selectors ...kube.Selector) SourceOption {
	return func(s *source) { s.selectors = append(s.selectors, selectors...) }
}

// When takes only the changes for which all predicates hold. For the reconciled kind, the
// beginning of a deletion and the deletion itself always count, whatever the predicates
// return: the cleanup of an object must run.
func When(predicates ...Predicate) SourceOption {
	return func(s *source) { s.predicates = append(s.predicates, predicates...) }
}

// Index keeps indexes of what is watched, so that lists that select by [kube.Index.Is] are
// answered without looking at every object. They take memory for every object, and each
// change costs a call of their functions. Of Secrets there can be one only with
// [KeepSecrets].
func Index(indexes ...*kube.Index) SourceOption {
	return func(s *source) { s.indexes = append(s.indexes, indexes...) }
}

// IndexLabels keeps indexes of these labels, so that lists that select by the equality of one
// are answered without looking at the labels of every object.
func IndexLabels(keys ...string) SourceOption {
	return func(s *source) { s.labelIndexes = append(s.labelIndexes, keys...) }
}

// KeepSecrets caches the contents of watched Secrets. By default only their metadata is
// cached. Then every read of a Secret goes to the server. An apply is still skipped if it
// repeats the last one and the Secret has not changed since; its result is the applied
// Secret with the live metadata.
func KeepSecrets() SourceOption { return func(s *source) { s.keepSecrets = true } }

// Owns runs the reconcile of the owner when a C that it controls changes: see
// [kube.OwnedBy].
func Owns[C any, P kube.ObjectOf[C]](options ...SourceOption) Option {
	kind, err := kube.TypeOf[C, P]()
	s := source{kind: kind, owned: true}
	s.streams = func(c *kube.Client) ([]kube.Stream, error) {
		return kube.All[C, P](c).Streams(s.selectors...)
	}
	return addSource(&s, err, options)
}

// Watches runs the reconcile of those that names returns when an S changes: with the S as
// it is, and as it was before. Of a name, the namespace and the name count; an empty name
// is nobody, and what the controller does not watch is passed over. The S is the function's
// own copy. One that does not fit its type is reported, and runs nothing. Of a Secret there
// is only the metadata, unless [KeepSecrets] is among the options.
func Watches[S any, P kube.ObjectOf[S]](names func(*S) []kube.Ref, options ...SourceOption) Option {
	kind, err := kube.TypeOf[S, P]()
	s := source{kind: kind}
	s.streams = func(c *kube.Client) ([]kube.Stream, error) {
		return kube.All[S, P](c).Streams(s.selectors...)
	}
	s.names = func(c *kube.Client, object []byte) ([]kube.Ref, error) {
		t, err := kube.All[S, P](c).Decode(object)
		if err != nil {
			return nil, err
		}
		return names(t), nil
	}
	if names == nil {
		err = errors.Join(err, noNames(kind.Resource))
	}
	return addSource(&s, err, options)
}

// WatchesReferenced runs the reconcile of the objects that refer to an S when that changes.
// What an object refers to says index, which is of the reconciled kind: the names of S in
// its own namespace, or namespace/name for those in others.
//
//	var bySettings = kube.NewIndex("settings", func(w *WebApp) []string { return []string{w.Spec.Settings} })
//
//	controller.New(reconcile, controller.WatchesReferenced[corev1.ConfigMap](bySettings))
//
// The index can be used in lists of the reconciled kind too.
func WatchesReferenced[S any, P kube.ObjectOf[S]](index *kube.Index, options ...SourceOption) Option {
	kind, err := kube.TypeOf[S, P]()
	s := source{kind: kind, references: index}
	s.streams = func(c *kube.Client) ([]kube.Stream, error) {
		return kube.All[S, P](c).Streams(s.selectors...)
	}
	if index == nil {
		err = errors.Join(err, fmt.Errorf("the index of what refers to %s is nil: make one with kube.NewIndex", kind.Resource))
	}
	return addSource(&s, err, options)
}

// WatchesMetadata is [Watches] for a resource of which only the metadata is watched and
// kept.
func WatchesMetadata(r kube.Resource, names func(*metav1.PartialObjectMetadata) []kube.Ref, options ...SourceOption) Option {
	s := source{kind: kube.Type{Resource: r}, metadataOnly: true}
	s.streams = func(c *kube.Client) ([]kube.Stream, error) {
		return kube.Metadata(c, r, "").Streams(s.selectors...)
	}
	s.names = func(c *kube.Client, object []byte) ([]kube.Ref, error) {
		m, err := kube.Metadata(c, r, "").Decode(object)
		if err != nil {
			return nil, err
		}
		return names(m), nil
	}
	var err error
	if names == nil {
		err = noNames(r)
	}
	return addSource(&s, err, options)
}

func noNames(r kube.Resource) error {
	return fmt.Errorf("the function from %s to names is nil: give one that says which objects a change concerns", r)
}

func addSource(s *source, err error, options []SourceOption) Option {
	err = errors.Join(err, s.narrow(options))
	if err == nil {
		// What is wrong with selectors shows without asking anybody.
		_, err = s.streams(kube.NewClientFromHandler(nil))
	}
	return func(settings *settings) {
		settings.wrong(err)
		settings.sources = append(settings.sources, *s)
	}
}
