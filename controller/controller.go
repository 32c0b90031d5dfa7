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

	"github.com/yare-go/yare/controller/internal/relation"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Controller runs a reconcile function for the objects of one kind. It is a part of a program:
// see package operator.
type Controller[T any] struct {
	configuration *configuration
	// asGoType returns an object of the reconciled kind as its Go type.
	asGoType func(kube.Object) *T
}

// configuration is what the author of a controller has given to it. It has no type parameter, so that a
// program contains the code of controllers once.
type configuration struct {
	settings
	kind kube.Type
	// goType is the name of the Go type of the objects.
	goType    string
	access    objectAccess
	functions functions
	finalizer string
	// former holds the names that finalizer had in earlier versions of the program.
	former []string
	// retired holds finalizers of earlier versions of the program that need no cleanup any more.
	retired []string
}

// New returns a controller of T. It calls reconcile for each object that is not being deleted, whatever finalizers the
// object has. [Controller.Finalizer] adds the function for objects that are being deleted. A finalizer that reconcile
// itself adds would never be removed, unless [ReconcileDeleting] is given.
//
// The object that reconcile gets is a private copy. The client reads objects of watched kinds from the cache, and all
// others from the server. The Action is ignored if there is an error: the back-off decides when the next call is due
// (see [Controller.Backoff]). After a [Terminal] error the next change does. A reconcile that must run at a certain
// time records what it cannot cure in the status, and returns [RequeueAfter] without an error.
//
// [Controller.Needs] and [Controller.Start] return an error for a mistake in the type or the options, before any
// request.
func New[T any, P kube.ObjectOf[T]](
	reconcile func(ctx context.Context, t *T, c *kube.Client) (Action, error), options ...Option,
) *Controller[T] {
	cfg := newConfiguration(reconcile == nil, options)
	cfg.goType = ident.GoTypeName(reflect.TypeFor[T]())
	cfg.functions.reconcile = func(ctx context.Context, obj kube.Object, c *kube.Client) (Action, error) {
		return reconcile(ctx, obj.(P), c)
	}
	// The type is looked at once, and not in each reconcile.
	cfg.finishConfiguration(cfg.reconciled.bind(P(new(T))))
	cfg.access = typedAccess[T]{kube.APIOf[T, P](nil, cfg.kind, "")}
	return &Controller[T]{configuration: cfg, asGoType: func(obj kube.Object) *T { return obj.(P) }}
}

// newConfiguration returns a configuration with options.
func newConfiguration(isReconcileMissing bool, options []Option) *configuration {
	cfg := &configuration{
		settings: settings{concurrency: 8, grace: 15 * time.Second},
		functions: functions{
			backoff: func(_ kube.Object, _ error, attempt int) time.Duration { return DefaultBackoff(attempt) },
		},
	}
	if isReconcileMissing {
		cfg.reject(errors.New("the reconcile function is nil: give controller.New one"))
	}
	for i, option := range options {
		if option == nil {
			cfg.reject(fmt.Errorf("the option %d of controller.New is nil: leave it out", i+1))
			continue
		}
		option.applyTo(&cfg.settings)
	}
	return cfg
}

// finishConfiguration sets the defaults that depend on the kind, adds the indexes of the relations, and records what is
// wrong with the options. err is what is wrong with the kind. finishConfiguration is called once.
func (cfg *configuration) finishConfiguration(err error) {
	cfg.reject(err)
	cfg.kind = cfg.reconciled.kind
	if cfg.reconciled.isAnyOwner {
		cfg.reject(errAnyOwnerWithoutOwns)
	}
	if cfg.reconciled.hasWriteVerbs {
		cfg.reject(errWriteVerbsWithoutChildren)
	}
	if cfg.manager == "" {
		cfg.manager = defaultManager(cfg.kind.Resource)
	}
	if cfg.name == "" {
		cfg.name = strings.ToLower(cfg.kind.Resource.Kind)
	}
	if err == nil {
		cfg.reject(cfg.checkOptions())
		cfg.addRelationIndexes()
	}
}

// defaultManager returns the default field manager of a controller of r.
func defaultManager(r wire.Resource) string {
	if r.Group == "" {
		return strings.ToLower(r.Kind) + "-operator"
	}
	return strings.ToLower(r.Kind) + "." + r.Group
}

// checkOptions returns what is wrong with options that do not fit one another, or nil.
func (cfg *configuration) checkOptions() error {
	var errs []error
	for _, w := range cfg.watched {
		errs = append(errs, w.relation.Check(w.kind.Resource, cfg.kind.Resource))
	}
	if len(cfg.manager) > 128 || strings.ContainsFunc(cfg.manager, func(r rune) bool { return !unicode.IsPrint(r) }) {
		errs = append(errs, fmt.Errorf(
			"the field manager %q is not valid: give controller.FieldManager up to 128 printable characters", cfg.manager))
	}
	return errors.Join(errs...)
}

// addRelationIndexes adds the indexes of the relations to those that the store of the reconciled kind keeps.
func (cfg *configuration) addRelationIndexes() {
	for _, w := range cfg.watched {
		if x := w.relation.Index(); x != nil {
			cfg.reconciled.indexes = append(cfg.reconciled.indexes, x)
		}
	}
}

// Finalizer calls cleanup before an object is deleted. The controller adds the finalizer name before
// anything else is done for an object, and removes it when cleanup returns [CleanupDone]. From the
// deletion on, the reconcile function is not called. Cleanup is called at least once, maybe for an
// object that was never reconciled.
//
// The name should be qualified, such as webapp.example.com/cleanup. A name without a slash can be the name of another
// program's finalizer too. For custom resources it is logged as a warning, and the API server accepts it. For the kinds
// of Kubernetes it is an error, because the API server refuses it.
//
// A program that changes the name names the earlier one in [Controller.FormerFinalizers]. A program that needs no
// cleanup any more names the finalizer in [Controller.RetiredFinalizers]. Otherwise the objects with the earlier
// finalizer could never be deleted.
func (c *Controller[T]) Finalizer(
	name string, cleanup func(ctx context.Context, t *T, c *kube.Client) (Cleanup, error),
) *Controller[T] {
	c.configuration.setFinalizer(name, cleanup == nil)
	c.configuration.functions.cleanup = func(ctx context.Context, obj kube.Object, client *kube.Client) (Cleanup, error) {
		return cleanup(ctx, c.asGoType(obj), client)
	}
	return c
}

// setFinalizer sets the finalizer, and records what is wrong with it.
func (cfg *configuration) setFinalizer(name string, isCleanupMissing bool) {
	if cfg.finalizer != "" {
		cfg.reject(fmt.Errorf("there is the finalizer %q already: call the second cleanup from the first", cfg.finalizer))
	}
	if len(validation.IsQualifiedName(name)) > 0 || cfg.isBuiltin() && !strings.Contains(name, "/") {
		cfg.reject(fmt.Errorf("the finalizer %q is not valid: write it as domain/name, such as %s.example.com/cleanup",
			name, cfg.name))
	}
	if isCleanupMissing {
		cfg.reject(fmt.Errorf("the cleanup function of the finalizer %q is nil: without one, leave the finalizer out", name))
	}
	cfg.finalizer = name
}

// isBuiltin reports whether Kubernetes defines the kind, whose objects it then validates by stricter rules.
func (cfg *configuration) isBuiltin() bool {
	group := cfg.kind.Resource.Group
	return cfg.kind.Definition == nil && (!strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io"))
}

// FormerFinalizers names the finalizers that [Controller.Finalizer] had in earlier versions of the program. One
// cleanup serves all names: an object that is deleted with several of them is cleaned up once, and then loses them
// in one patch. An object that is not being deleted gets the present finalizer in the patch that removes the former
// ones. With [Controller.FinalizerWhen] this concerns only objects for which the condition holds, or that have the
// present finalizer. The call can be removed from the program once every object has been reconciled.
func (c *Controller[T]) FormerFinalizers(names ...string) *Controller[T] {
	c.configuration.reject(checkFinalizerNames("former", names))
	c.configuration.former = append(c.configuration.former, names...)
	return c
}

// RetiredFinalizers names finalizers of earlier versions of the program that need no cleanup any more. The controller
// removes them from each object before the reconcile, and from objects that are being deleted, without a call of
// the cleanup function: a finalizer that was renamed belongs into [Controller.FormerFinalizers]. With
// [Controller.FinalizerWhen] this concerns only objects for which the condition holds, or that have the present
// finalizer. The call can be removed from the program once every object has been reconciled.
func (c *Controller[T]) RetiredFinalizers(names ...string) *Controller[T] {
	c.configuration.reject(checkFinalizerNames("retired", names))
	c.configuration.retired = append(c.configuration.retired, names...)
	return c
}

// checkFinalizerNames returns which finalizers of earlier versions are not valid, or nil. The adjective in the error is
// former or retired.
func checkFinalizerNames(adjective string, names []string) error {
	var errs []error
	for _, name := range names {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("the %s finalizer %q is not valid: %s", adjective, name, problems[0]))
		}
	}
	return errors.Join(errs...)
}

// FinalizerWhen adds the finalizer only to objects for which condition returns true, such as objects
// with something outside of the cluster. The controller asks before each reconcile of an object without
// the finalizer, and adds the finalizer before the reconcile. From then on the finalizer stays until
// the cleanup is done, whatever condition would return. An object that is deleted without the finalizer
// has no cleanup. The controller also asks before it acts on a former or a retired finalizer of an object without
// the present finalizer. If condition returns false, these finalizers stay: they may belong to another instance of the
// program. condition must not change the object.
func (c *Controller[T]) FinalizerWhen(condition func(*T) bool) *Controller[T] {
	if condition == nil {
		c.configuration.reject(errors.New("the condition of the finalizer is nil: without one, leave FinalizerWhen out"))
	}
	c.configuration.functions.needsFinalizer = func(obj kube.Object) bool { return condition(c.asGoType(obj)) }
	return c
}

// Backoff sets the function that returns how long to wait after a failure. attempt counts the
// waits in a row, from 1 on. A reconcile that a change starts during a wait, and that fails, begins no other wait:
// policy is called with the same attempt, and the retry is not later than it was before. Conflicts do not count, and
// have a back-off of their own. The wait is never shorter than 10 ms or than the server demands, and up to a tenth is
// added to it at random. [DefaultBackoff] is the default. It also applies if the object could not be read or policy
// panics. The panic is logged.
func (c *Controller[T]) Backoff(policy func(t *T, err error, attempt int) time.Duration) *Controller[T] {
	if policy == nil {
		c.configuration.reject(errors.New("the backoff policy is nil: without one, leave Backoff out"))
	}
	c.configuration.functions.backoff = func(obj kube.Object, err error, attempt int) time.Duration {
		return policy(c.asGoType(obj), err, attempt)
	}
	return c
}

// checkFinalizers returns what is wrong with the finalizers, or nil.
func (cfg *configuration) checkFinalizers() error {
	var errs []error
	if cfg.finalizer != "" && slices.Contains(cfg.retired, cfg.finalizer) {
		errs = append(errs,
			fmt.Errorf("the finalizer %q is both retired and in use: remove it from RetiredFinalizers", cfg.finalizer))
	}
	for _, name := range cfg.former {
		if name == cfg.finalizer || slices.Contains(cfg.retired, name) {
			errs = append(errs, fmt.Errorf(
				"the finalizer %q is former, and in use or retired as well: remove it from FormerFinalizers or from the others",
				name))
		}
	}
	if cfg.finalizer == "" && len(cfg.former) > 0 {
		errs = append(errs, errors.New("FormerFinalizers has no cleanup: add one with Finalizer, or use RetiredFinalizers"))
	}
	if cfg.finalizer == "" && cfg.functions.needsFinalizer != nil {
		errs = append(errs, errors.New("FinalizerWhen has no finalizer: add one with Finalizer"))
	}
	if _, ok := cfg.kind.Representation.ProjectedFields(); ok && (cfg.finalizer != "" || len(cfg.retired) > 0) {
		errs = append(errs,
			errors.New("the type is a projection, which cannot be written: a controller with finalizers needs the whole type"))
	}
	return errors.Join(errs...)
}

// Needs returns the definition of T, if T defines itself. Needs also returns the permissions that the
// controller uses or its author has declared:
//
//   - to get, list and watch T and all sources
//   - to create and patch the children of [Owns], and to update the finalizers of T, which the server
//     may demand for the field blockOwnerDeletion in owner references
//   - to create, patch and delete the children of [OwnsByLabel]
//   - to patch T for a finalizer, also a former or a retired one, and for [FormerFieldManagers]
//   - to patch the status of T, if T has a status and the program defines T
//   - the permissions of each [Permission]
func (c *Controller[T]) Needs() (kube.Needs, error) { return c.configuration.needs() }

// Start runs the controller until ctx ends. Then it starts no new calls, waits for the running
// calls, and returns nil. After the grace ([ShutdownGrace]) the context of the running calls ends,
// and their clients refuse all requests. If a call, a map function or a source has not returned
// 3 s later, Start returns an error with the number of running calls.
func (c *Controller[T]) Start(ctx context.Context, rt *Runtime) error {
	return c.configuration.start(ctx, rt)
}

// start runs a controller until ctx ends: see [Controller.Start].
func (cfg *configuration) start(ctx context.Context, rt *Runtime) error {
	if _, err := cfg.needs(); err != nil {
		return err
	}
	e, err := newEngine(ctx, cfg, rt)
	if err != nil {
		return fmt.Errorf("the controller %s: %w", cfg.name, err)
	}
	if cfg.finalizer != "" && !strings.Contains(cfg.finalizer, "/") {
		e.log.Warn("the finalizer has no domain, so another program may use the same name", "finalizer", cfg.finalizer,
			"hint", "give Finalizer a name such as "+cfg.name+".example.com/cleanup, and name this one in FormerFinalizers")
	}
	return e.run(ctx)
}

// needs returns what the controller needs: see [Controller.Needs].
func (cfg *configuration) needs() (kube.Needs, error) {
	if err := errors.Join(append(slices.Clone(cfg.errs), cfg.checkFinalizers())...); err != nil {
		return kube.Needs{}, fmt.Errorf("the controller of %s: %w", cfg.goType, err)
	}
	needs := kube.Needs{
		Controllers: []string{cfg.name}, FieldManagers: []string{cfg.manager}, Reconciles: []wire.Resource{cfg.kind.Resource},
		Finalizers:   slices.Concat(cfg.former, cfg.retired),
		EveryReplica: true, ShutdownTime: min(cfg.grace, longestGrace) + lastWait,
		OwnerLabels: ownerLabels(cfg.watched),
	}
	if cfg.finalizer != "" {
		needs.Finalizers = append(needs.Finalizers, cfg.finalizer)
		needs.AddedFinalizers = []string{cfg.finalizer}
	}
	if cfg.kind.Definition != nil {
		needs.Defines = []kube.Type{cfg.kind}
	}
	addAccess := func(w *watchedKind, subresource string, verbs ...wire.Verb) {
		needs.Access = append(needs.Access, w.access(subresource, verbs)...)
	}
	verbs := readVerbs()
	if cfg.finalizer != "" || len(cfg.retired) > 0 || len(cfg.formerManagers) > 0 {
		verbs = append(verbs, wire.VerbPatch)
	}
	addAccess(&cfg.reconciled, "", verbs...)
	if cfg.kind.Definition != nil && !cfg.kind.Definition.Foreign && cfg.kind.HasStatus() {
		addAccess(&cfg.reconciled, "status", wire.VerbPatch)
	}
	for _, w := range cfg.watched {
		addAccess(w, "", append(readVerbs(), w.writeVerbs()...)...)
	}
	if cfg.setsOwners() {
		addAccess(&cfg.reconciled, "finalizers", wire.VerbUpdate)
	}
	for _, p := range cfg.permissions {
		p.addTo(&needs)
	}
	return needs, nil
}

// setsOwners reports whether the controller writes owner references to T.
func (cfg *configuration) setsOwners() bool {
	return slices.ContainsFunc(cfg.watched, func(w *watchedKind) bool {
		_, isOwned := w.relation.(relation.Owner)
		return isOwned && len(w.writeVerbs()) > 0
	})
}
