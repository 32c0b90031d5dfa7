package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
)

// Func is a reconcile function. The object is its own copy. The client reads objects of watched
// kinds from the cache, and all others from the server. With an error the Action does not count: the
// back-off decides when the next call is due (see [Controller.Backoff]), and after a [Terminal] error
// the next change. A function that must run at a certain time records what it cannot cure in the
// status, and returns [RequeueAfter] without an error.
type Func[T any] = func(ctx context.Context, t *T, c *kube.Client) (Action, error)

// CleanupFunc is a cleanup function: see [Controller.Finalizer]. Its object and its client are
// those of a [Func]. An error means that the cleanup is not finished.
type CleanupFunc[T any] = func(ctx context.Context, t *T, c *kube.Client) (Cleanup, error)

// Controller runs a reconcile function for the objects of one kind. It is a part of a program:
// see package operator.
type Controller[T any] struct {
	settings
	kind kube.Type
	// api returns the API of T for a client, in a namespace, or in all of them if it is empty.
	api       func(c *kube.Client, namespace string) kube.API[T]
	object    func(*T) kube.Object
	reconcile Func[T]
	finalizer string
	// retired holds the finalizers of earlier versions of the program.
	retired []string
	cleanup CleanupFunc[T]
	// needsFinalizer is the condition of FinalizerWhen, or nil.
	needsFinalizer func(*T) bool
	backoff        func(t *T, err error, attempt int) time.Duration
}

// New returns a controller of T. A mistake in the type or the options is an error of
// [Controller.Needs] and [Controller.Start], before any request.
func New[T any, P kube.ObjectOf[T]](reconcile Func[T], options ...Option) *Controller[T] {
	c := &Controller[T]{
		settings:  settings{concurrency: 8, grace: 15 * time.Second},
		object:    func(t *T) kube.Object { return P(t) },
		reconcile: reconcile,
		backoff:   func(_ *T, _ error, attempt int) time.Duration { return DefaultBackoff(attempt) },
	}
	if reconcile == nil {
		c.reject(errors.New("the reconcile function is nil: give controller.New one"))
	}
	for i, option := range options {
		if option == nil {
			c.reject(fmt.Errorf("the option %d of controller.New is nil: leave it out", i+1))
			continue
		}
		option(&c.settings)
	}
	// The type is looked at once, and not in each reconcile.
	api, err := bind[T, P](&c.self)
	c.reject(err)
	c.kind, c.api = c.self.kind, api.For
	if c.self.isAnyOwner {
		c.reject(errNoOwners)
	}
	if c.manager == "" {
		c.manager = defaultManager(c.name, c.kind.Resource)
	}
	if c.name == "" {
		c.name = strings.ToLower(c.kind.Resource.Kind)
	}
	if err == nil {
		c.check()
	}
	return c
}

// defaultManager returns the field manager of a controller of r whose author gave it that name,
// or none.
func defaultManager(name string, r kube.Resource) string {
	switch {
	case name != "":
		return name + "-operator"
	case r.Group == "":
		return strings.ToLower(r.Kind) + "-operator"
	default:
		return strings.ToLower(r.Kind) + "." + r.Group
	}
}

// check records the mistakes in options that do not fit one another.
func (c *Controller[T]) check() {
	for _, w := range c.watched {
		c.reject(w.relation.check(w.kind.Resource, c.kind.Resource))
		if x := w.relation.index(); x != nil {
			c.self.indexes = append(c.self.indexes, x)
		}
	}
	if len(c.manager) > 128 || strings.ContainsFunc(c.manager, func(r rune) bool { return !unicode.IsPrint(r) }) {
		c.reject(fmt.Errorf("the field manager %q is not valid: give controller.FieldManager up to 128 printable characters", c.manager))
	}
}

// Finalizer calls cleanup before an object is deleted. The controller adds the finalizer name
// before anything else is done for an object, and removes it when cleanup returns [CleanupDone]. From
// the deletion on, the reconcile function is not called. Cleanup is called at least once, maybe
// for an object that was never reconciled. The name must be qualified, such as
// webapp.example.com/cleanup. A program that changes the name, or needs no cleanup any more,
// names the former finalizer in [Controller.RetiredFinalizers]: objects that carry it could
// never be deleted otherwise.
func (c *Controller[T]) Finalizer(name string, cleanup CleanupFunc[T]) *Controller[T] {
	if c.finalizer != "" {
		c.reject(fmt.Errorf("there is the finalizer %q already: call the second cleanup from the first", c.finalizer))
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 || !strings.Contains(name, "/") {
		c.reject(fmt.Errorf("the finalizer %q is not valid: write it as domain/name, such as %s.example.com/cleanup", name, c.name))
	}
	if cleanup == nil {
		c.reject(fmt.Errorf("the cleanup function of the finalizer %q is nil: without one, leave the finalizer out", name))
	}
	c.finalizer, c.cleanup = name, cleanup
	return c
}

// FinalizerWhen adds the finalizer only to objects for which condition returns true, such as those that
// have something outside of the cluster. The controller asks before each reconcile of an object without
// the finalizer, and adds the finalizer before the reconcile. From then on the finalizer stays until the
// cleanup is done, whatever condition would return. An object that is deleted without the finalizer has
// no cleanup. condition must not change the object.
func (c *Controller[T]) FinalizerWhen(condition func(*T) bool) *Controller[T] {
	if condition == nil {
		c.reject(errors.New("the condition of the finalizer is nil: without one, leave FinalizerWhen out"))
	}
	c.needsFinalizer = condition
	return c
}

// Backoff sets the function that returns how long to wait after a failure. attempt counts the
// failures in a row, from 1 on. Conflicts do not count, and have a back-off of their own. The
// wait is never shorter than the server demands. [DefaultBackoff] is the default. It also
// applies to an object that could not be read, and if policy panics, which is logged.
func (c *Controller[T]) Backoff(policy func(t *T, err error, attempt int) time.Duration) *Controller[T] {
	if policy == nil {
		c.reject(errors.New("the backoff policy is nil: without one, leave Backoff out"))
	}
	c.backoff = policy
	return c
}

// checkCondition returns an error if there is a condition without a finalizer.
func (c *Controller[T]) checkCondition() error {
	if c.needsFinalizer == nil || c.finalizer != "" {
		return nil
	}
	return errors.New("FinalizerWhen has no finalizer: add one with Finalizer")
}

// checkProjection returns an error if the controller would write finalizers to a projection.
func (c *Controller[T]) checkProjection() error {
	if _, ok := c.kind.Representation.ProjectedFields(); !ok || c.finalizer == "" && len(c.retired) == 0 {
		return nil
	}
	return errors.New("the type is a projection, which cannot be written: a controller with finalizers needs the whole type")
}

// Needs returns the definition of T, if T defines itself, and the permissions that the
// controller itself uses. It does not know those that the reconcile function uses.
func (c *Controller[T]) Needs() (kube.Needs, error) {
	if err := errors.Join(append(slices.Clone(c.errs), c.checkRetired(), c.checkCondition(), c.checkProjection())...); err != nil {
		return kube.Needs{}, fmt.Errorf("the controller of %s: %w", kube.TypeName(reflect.TypeFor[T]()), err)
	}
	needs := kube.Needs{Names: []string{c.name}, FieldManagers: []string{c.manager}}
	if c.kind.Definition != nil {
		needs.Defines = []kube.Type{c.kind}
	}
	verbs := []kube.Verb{kube.VerbGet, kube.VerbList, kube.VerbWatch}
	own := kube.Access{Resource: c.kind.Resource, Verbs: verbs}
	if c.finalizer != "" || len(c.retired) > 0 {
		own.Verbs = append(verbs[:3:3], kube.VerbPatch)
	}
	needs.Access = append(needs.Access, own)
	for _, w := range c.watched {
		needs.Access = append(needs.Access, kube.Access{Resource: w.kind.Resource, Verbs: verbs})
	}
	return needs, nil
}
