package ctrl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

// requeueDelay is the delay of a Result with Requeue alone.
const requeueDelay = time.Second

// Controller returns a part of a program of yare that calls a reconciler of controller-runtime for the objects of T.
// The queue, the back-off, the metrics and the live page are those of yare's controllers:
//
//	operator.Main(ctrl.Controller[CronJob](role, scheme, func(c cluster.Cluster) (reconcile.Reconciler, error) {
//		return &CronJobReconciler{Client: c.GetClient(), Scheme: c.GetScheme()}, nil
//	}, controller.Owns[batchv1.Job]()))
//
// newReconciler is called once, when the part starts, on every replica. The cluster has the client, the cache, the
// field indexer and the recorders of controller-runtime, as a manager has them. Its reads and writes are those of a
// manager by [Manager]. role is as in [Manager]. options say what else triggers a reconcile, in place of
// SetupWithManager.
//
// A type T without a Definition, such as that of an API package, is embedded in a struct with one, which is Foreign.
//
// What is different from controller-runtime:
//
//   - The context of a reconcile belongs to its writes: they pass the checks of package controller. So an apply that
//     would change nothing is not sent, and an apply to an object that is not a child is [kube.ErrForeignChild].
//   - A reconcile for an object that is gone comes once, unless the program was down. Its error is logged, and not
//     retried.
//   - A Result with Requeue and without RequeueAfter comes again after a second. A Priority is ignored: all objects
//     have the same one.
//   - An error is retried by the back-off of [controller.Controller.Backoff], and a conflict without an error in the
//     log. An error by reconcile.TerminalError is retried after the next change.
//   - The reconciler sees objects that are being deleted. It adds and removes its finalizers itself.
func Controller[T any, P kube.ObjectOf[T]](
	role []byte, scheme *runtime.Scheme, newReconciler func(cluster.Cluster) (reconcile.Reconciler, error),
	options ...controller.Option,
) operator.Part {
	// The compiler compiles this function for each T. Therefore methods without T do the work.
	p := controllerPart{scheme: scheme, newReconciler: newReconciler}
	p.newEngine = func(reconcile reconcileFunc, onGone func(kube.Key)) operator.Part {
		all := append([]controller.Option{controller.ReconcileDeleting(), controller.OnGone(onGone)}, options...)
		return controller.New[T, P](func(ctx context.Context, t *T, c *kube.Client) (controller.Action, error) {
			object := P(t)
			ctx = context.WithValue(ctx, handlerKey{}, wire.Handler(c))
			return reconcile(ctx, kube.Key{Namespace: object.GetNamespace(), Name: object.GetName()})
		}, all...)
	}
	// This engine is asked for its needs only.
	p.Part = p.newEngine(nil, func(kube.Key) {})
	p.needs, p.err = needsOf(role)
	if newReconciler == nil {
		p.err = errors.Join(p.err, errors.New("the function that makes the reconciler is nil: give ctrl.Controller one"))
	}
	return p
}

// reconcileFunc reconciles an object that is there.
type reconcileFunc func(context.Context, kube.Key) (controller.Action, error)

// handlerKey is the key of the handler of a reconcile in its context.
type handlerKey struct{}

// controllerPart is a controller with the permissions of a role.
type controllerPart struct {
	operator.Part
	scheme        *runtime.Scheme
	newReconciler func(cluster.Cluster) (reconcile.Reconciler, error)
	// newEngine returns the controller. Its functions reconcile an object that is there, and one that is gone.
	newEngine func(reconcile reconcileFunc, onGone func(kube.Key)) operator.Part
	needs     kube.Needs
	err       error
}

// Needs returns what the controller needs, with the permissions of the role.
func (p controllerPart) Needs() (kube.Needs, error) {
	needs, err := p.Part.Needs()
	needs.Rules, needs.Access = append(needs.Rules, p.needs.Rules...), append(needs.Access, p.needs.Access...)
	return needs, errors.Join(p.err, err)
}

// Start runs the controller, and what the reconciler reads from, until ctx ends.
func (p controllerPart) Start(ctx context.Context, rt *controller.Runtime) error {
	needs, err := p.Part.Needs()
	if err != nil {
		return err
	}
	bridge := forRuntime(rt)
	bridge.reader = reconcileHandler{next: bridge.reader, resources: resourcesOf(needs)}
	own, err := cluster.New(bridge.config(), func(o *cluster.Options) {
		o.Scheme, o.NewCache, o.NewClient = p.scheme, bridge.NewCache, bridge.NewClient
		o.Logger = logr.FromSlogHandler(rt.Log.Handler())
		o.Cache.DefaultNamespaces = namespacesOf(rt.Client)
	})
	if err != nil {
		return fmt.Errorf("make the client of the reconciler: %w", err)
	}
	r, err := p.newReconciler(own)
	if err != nil {
		return fmt.Errorf("make the reconciler: %w", err)
	}
	onGone := func(key kube.Key) {
		if _, err := r.Reconcile(ctx, requestFor(key)); err != nil {
			rt.Log.Error("reconcile of an object that is gone failed",
				"namespace", key.Namespace, "name", key.Name, "error", err)
		}
	}
	engine := p.newEngine(func(ctx context.Context, key kube.Key) (controller.Action, error) {
		result, err := r.Reconcile(ctx, requestFor(key))
		return actionOf(result), errorOf(err)
	}, onGone)
	clusterCtx, endCluster := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endCluster(nil)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		err := own.Start(clusterCtx)
		cancel(err)
		ended <- err
	}()
	err = engine.Start(ctx, rt)
	// The running reconciles have ended.
	endCluster(nil)
	return errors.Join(err, <-ended)
}

// requestFor returns the request for an object.
func requestFor(key kube.Key) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}}
}

// actionOf returns the action for a result.
func actionOf(result reconcile.Result) controller.Action {
	delay := result.RequeueAfter
	if result.Requeue { //nolint:staticcheck // reconcilers still set it
		delay = cmp.Or(delay, requeueDelay)
	}
	if delay <= 0 {
		return controller.Done()
	}
	return controller.RequeueAfter(delay)
}

// errorOf returns the error of a reconciler as yare has it.
func errorOf(err error) error {
	if errors.Is(err, reconcile.TerminalError(nil)) {
		return controller.Terminal(err)
	}
	return err
}

// resourcesOf returns the resources that a controller watches, by their versions and plurals.
func resourcesOf(needs kube.Needs) map[schema.GroupVersionResource]wire.Resource {
	resources := make(map[schema.GroupVersionResource]wire.Resource)
	for _, access := range needs.Access {
		resources[access.Resource.GroupVersion().WithResource(access.Resource.Plural)] = access.Resource
	}
	return resources
}

// reconcileHandler passes the requests of a reconcile to the handler of the reconcile, and other requests to next.
type reconcileHandler struct {
	next wire.Handler
	// resources are complete. The resource of a request from HTTP has neither a kind nor a scope.
	resources map[schema.GroupVersionResource]wire.Resource
}

// Do serves one request.
func (h reconcileHandler) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	own, isReconcile := ctx.Value(handlerKey{}).(wire.Handler)
	if !isReconcile {
		return h.next.Do(ctx, r)
	}
	if complete, isWatched := h.resources[r.Resource.GroupVersion().WithResource(r.Resource.Plural)]; isWatched {
		r.Resource = complete
	}
	return own.Do(ctx, r)
}
