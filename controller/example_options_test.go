package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// reconcileGarden stands for a reconcile function.
func reconcileGarden(context.Context, *Garden, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

// The options of a controller for external systems that are slow, and for objects with many changes.
func ExampleOption() {
	deleted := make(chan kube.Key, 1)
	requested := make(chan kube.Key)
	options := []controller.Option{
		controller.Concurrency(2),                            // the external system takes two calls at a time
		controller.ShutdownGrace(time.Minute),                // a call may take that long when the program ends
		controller.Debounce(time.Second),                     // a burst of changes leads to one reconcile
		controller.CancelDeleted(),                           // a call ends when its object is deleted
		controller.Channel(requested),                        // a webhook of the external system asks for an object
		controller.OnGone(func(k kube.Key) { deleted <- k }), // metrics of the object go
	}
	fmt.Println(controller.New(reconcileGarden, options...).Needs())
	_ = func(ctx context.Context, c *kube.Client) {
		runController(c, controller.New(reconcileGarden, options...))
	}
}

// Predicates and options of a source decide which changes lead to a reconcile, and what is kept in memory.
func ExampleKindOption() {
	isLarge := controller.Predicate(func(c controller.Change) bool {
		if c.Type == controller.Deleted {
			return true
		}
		before, after := c.Before, c.Record()
		return c.Type == controller.Added || c.Type == controller.Modified && before.Size != after.Size
	})
	var types map[controller.ChangeType]string
	children := []controller.KindOption{
		controller.When(controller.Any(controller.AnnotationsChanged, controller.FinalizersChanged, isLarge)),
		controller.Select(kube.Label("tier", "front")), // others are neither watched nor kept
		controller.InNamespaces("shop"),
	}
	settings := []controller.KindOption{
		controller.KeepSecrets(), // otherwise only the metadata of Secrets is kept
		controller.InOwnNamespace(),
		controller.Changed(func(before, after *corev1.Secret) bool {
			return before == nil || string(before.Data["password"]) != string(after.Data["password"])
		}),
	}
	keys := func(_ context.Context, s *corev1.Secret, _ *kube.Client) ([]kube.Key, error) {
		return []kube.Key{{Namespace: s.Namespace, Name: s.Labels["garden"]}}, nil
	}
	certificates := wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, Plural: "certificates",
	}
	gardens := controller.New(reconcileGarden,
		controller.Owns[Plant](children...),
		controller.Watches(keys, settings...),
		// cert-manager need not be there. Its objects need no Go type.
		controller.Reconciled(controller.Index(kube.NewIndex("size", func(g *Garden) []string { return []string{fmt.Sprint(g.Spec.Size)} }))),
		controller.Reads[corev1.Node](wire.VerbList),
	)
	_, _, _ = gardens, types, certificates
	key := controller.Record{Namespace: "shop", Name: "web"}.Key()
	fmt.Println(key.Namespace, key.Name)
	// Output: shop web
}

// A part declares its permissions. Those that follow from Owns and Watches need no line.
func ExamplePermission() {
	permissions := []controller.Permission{
		controller.Writes[corev1.ConfigMap](wire.VerbPatch).InNamespaces("registry").Named("gardens"),
		controller.Reads[corev1.Pod](wire.VerbGet).Subresource("log"),
		controller.Allow(kube.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}),
	}
	for _, p := range permissions {
		needs, err := p.Needs()
		for _, a := range needs.Access {
			fmt.Println(a.Resource, a.Subresource, a.Verbs, a.Names, a.Namespaces, err)
		}
		for _, rule := range needs.Rules {
			fmt.Println(rule.NonResourceURLs, rule.Verbs, err)
		}
	}
	// Output:
	// configmaps  [patch] [gardens] [registry] <nil>
	// pods log [get] [] [] <nil>
	// [/metrics] [get] <nil>
}

// counter is an Observer that counts failures, for metrics of a program's own.
type counter struct{ failures map[controller.Outcome]int }

// Queue gets the queue of each controller.
func (c *counter) Subscribed(name string, stats func() controller.QueueStats) {
	fmt.Println(name, stats().Ready >= 0)
}

// Result gets the result of each reconcile, with its writes.
func (c *counter) Result(r controller.Result) {
	for _, w := range r.Writes {
		var report controller.WriteReport = w
		fmt.Println(report)
	}
	switch outcome := r.Outcome(); outcome {
	case controller.OutcomeSuccess, controller.OutcomeConflict: // a conflict is no fault
	case controller.OutcomeError, controller.OutcomeTerminal, controller.OutcomePanic:
		c.failures[outcome]++
	}
}

// A program with a main function of its own runs a controller by Start. operator.Main does this for all others.
func ExampleController_Start() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := newServer().client() // an API server in memory
	var observer controller.Observer = &counter{failures: make(map[controller.Outcome]int)}
	rt := &controller.Runtime{Client: client, Cache: cache.New(client), Log: slog.New(slog.DiscardHandler), Observer: observer}
	defer rt.Cache.Close()
	gardens := controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		defer cancel()
		return controller.Done(), controller.Terminal(errors.New("too large"))
	}, controller.Name("gardens"), controller.OnResult(observer.Result))
	check(kube.Create(ctx, client, garden("eden")))
	if err := rt.WaitElected(ctx); err != nil { // nobody is elected here, so this returns at once
		fmt.Println(err)
	}
	fmt.Println(gardens.Start(ctx, rt))
	// Output:
	// gardens true
	// <nil>
}

// Two generations of finalizers: the objects of an earlier release lose theirs, and only gardens with plants outside of
// the cluster get the new one.
func ExampleController_FinalizerWhen() {
	cleanup := func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
		return controller.CleanupDone(), nil
	}
	gardens := controller.New(reconcileGarden).
		Finalizer("example.com/plants", cleanup).
		FinalizerWhen(func(g *Garden) bool { return g.Spec.Size > 0 }).
		RetiredFinalizers("gardens.example.com")
	needs, err := gardens.Needs()
	fmt.Println(needs.Finalizers, err)
	// Output: [gardens.example.com example.com/plants] <nil>
}

// A kind of another project that may be missing, without its Go module.
func ExampleIfServed() {
	certificates := wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, Plural: "certificates",
	}
	gardens := controller.New(reconcileGarden,
		controller.OwnsByLabel[Plant]("example.com/garden", controller.IfServed()),
		controller.Reads[metav1.PartialObjectMetadata](wire.VerbList).Kind(certificates),
	)
	_, err := gardens.Needs()
	fmt.Println(err)
	_ = controller.Kind(certificates) // an option for controller.Owns[unstructured.Unstructured]
	// Output: <nil>
}

// A group of Pods restarts as a whole when one of them is being deleted. Its controller sees the Pod while it ends.
func ExampleReconcileDeleting() {
	isEnding := func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }
	pods := controller.New(func(_ context.Context, p *corev1.Pod, _ *kube.Client) (controller.Action, error) {
		if isEnding(p) {
			fmt.Println("restart the group of", p.Name) // before the Pod is gone
		}
		return controller.Done(), nil
	}, controller.ReconcileDeleting())
	needs, err := pods.Needs()
	fmt.Println(needs.Controllers, needs.Finalizers, err)
	// Output: [pod] [] <nil>
}
