package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// check panics with an error. The examples have no other use for errors.
func check[T any](_ T, err error) {
	if err != nil {
		panic(err)
	}
}

// runController runs a controller until end is called. In a program operator.Main does that.
func runController(c *kube.Client, p part) (end func()) {
	caches := cache.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- p.Start(ctx, &controller.Runtime{Client: c, Cache: caches, Log: slog.New(slog.DiscardHandler)})
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			fmt.Println(err)
		}
		caches.Close()
	}
}

// Each Garden owns a Plant as high as the Garden is large. Somebody deletes the Plant, and the next reconcile makes it
// anew. Without Owns nobody would notice.
func ExampleOwns() {
	ctx, c := context.Background(), newServer().client() // an API server in memory
	reconciled := make(chan string, 10)
	gardens := controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		plant := &Plant{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}, Spec: PlantSpec{Height: g.Spec.Size}}
		_, err := kube.Apply(ctx, c, kube.OwnedBy(g, plant))
		reconciled <- fmt.Sprintf("%s has a plant %d high", g.Name, g.Spec.Size)
		return controller.Done(), err
	}, controller.Owns[Plant]())

	check(kube.Create(ctx, c, garden("eden")))
	end := runController(c, gardens)
	defer end()
	fmt.Println(<-reconciled)
	if err := c.Delete(ctx, plant("eden")); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-reconciled)
	// Output:
	// eden has a plant 1 high
	// eden has a plant 1 high
}

// The Garden is namespaced, and the Country that it makes is not. So an owner reference is not allowed, and a label
// names the owner. The garbage collector does not know the label: a cleanup deletes the Country.
func ExampleOwnsByLabel() {
	const label = "garden.example.com/owner"
	ctx, c := context.Background(), newServer().client()
	cleaned := make(chan string, 10)
	reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		_, err := kube.Apply(ctx, c, kube.OwnedByLabel(g, label, &Country{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}))
		return controller.Done(), err
	}
	cleanup := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Cleanup, error) {
		countries, err := kube.List[Country](ctx, c, "", kube.Label(label, string(g.UID)))
		if err != nil {
			return controller.CleanupPending(), err
		}
		for _, country := range countries {
			if err := kube.IgnoreNotFound(c.Delete(ctx, country)); err != nil {
				return controller.CleanupPending(), err
			}
			cleaned <- "deleted the country " + country.Name
		}
		return controller.CleanupDone(), nil
	}
	gardens := controller.New(reconcile, controller.OwnsByLabel[Country](label)).Finalizer("garden.example.com/country", cleanup)

	check(kube.Create(ctx, c, garden("eden")))
	end := runController(c, gardens)
	defer end()
	check(watch.Until(ctx, kube.Everywhere[Country](c), "eden", func(country *Country) (bool, error) { return country != nil, nil }))
	if err := c.Delete(ctx, garden("eden")); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-cleaned)
	// Output:
	// deleted the country eden
}

// The bed of each Garden is in a service outside of the cluster, so no garbage collector deletes the bed. The controller adds
// the finalizer before the first reconcile. After a deletion it calls the cleanup, and the object goes when the cleanup is
// done.
func ExampleController_Finalizer() {
	ctx, c := context.Background(), newServer().client() // an API server in memory
	dug, steps := make(chan string, 10), make(chan string, 10)
	gardens := controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
		dug <- fmt.Sprintf("dig the bed of %s, which has the finalizer %s", g.Name, g.Finalizers)
		return controller.Done(), nil
	}, controller.OnGone(func(k kube.Key) { steps <- k.Name + " is gone" }))
	gardens.Finalizer("garden.example.com/bed", func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
		steps <- "fill the bed of " + g.Name // a bed that is filled already is no error
		return controller.CleanupDone(), nil
	})

	check(kube.Create(ctx, c, garden("eden")))
	end := runController(c, gardens)
	defer end()
	fmt.Println(<-dug) // and once more, because the finalizer is a change of the object
	if err := c.Delete(ctx, garden("eden")); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-steps)
	fmt.Println(<-steps)
	// Output:
	// dig the bed of eden, which has the finalizer [garden.example.com/bed]
	// fill the bed of eden
	// eden is gone
}

// A map function returns the objects that a change concerns: here all Gardens in the namespace of a ConfigMap. It has
// a client that reads what the controller watches.
func ExampleWatches() {
	ctx, c := context.Background(), newServer().client()
	reconciled := make(chan string, 10)
	gardens := controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
		reconciled <- g.Name
		return controller.Done(), nil
	}, controller.Watches(func(ctx context.Context, soil *corev1.ConfigMap, c *kube.Client) ([]kube.Key, error) {
		gardens, err := kube.List[Garden](ctx, c, soil.Namespace)
		return kube.KeysOf(gardens...), err
	}))

	check(kube.Create(ctx, c, garden("eden")))
	end := runController(c, gardens)
	defer end()
	fmt.Println("at the start:", <-reconciled)
	check(kube.Create(ctx, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "soil"}}))
	fmt.Println("after a change of the soil:", <-reconciled)
	// Output:
	// at the start: eden
	// after a change of the soil: eden
}

// An index returns which ConfigMaps an object names. With it the controller finds the objects to reconcile when a
// ConfigMap changes, and lists can be narrowed.
func ExampleWatchesReferenced() {
	ctx, c := context.Background(), newServer().client()
	const annotation = "example.com/soil"
	bySoil := kube.NewIndex("soil", func(g *Garden) []string { return []string{g.Annotations[annotation]} })
	reconciled := make(chan string, 10)
	gardens := controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		soil, err := kube.Get[corev1.ConfigMap](ctx, c, g.Namespace, g.Annotations[annotation])
		if err != nil {
			return controller.Done(), kube.IgnoreNotFound(err) // its creation triggers the next reconcile
		}
		neighbours, err := kube.List[Garden](ctx, c, g.Namespace, bySoil.Is(soil.Name))
		if err != nil {
			return controller.Done(), err
		}
		reconciled <- fmt.Sprintf("%s: %s, shared by %d", g.Name, soil.Data["kind"], len(neighbours))
		return controller.Done(), nil
	}, controller.WatchesReferenced[corev1.ConfigMap](bySoil))

	eden := garden("eden")
	eden.Annotations = map[string]string{annotation: "soil"}
	check(kube.Create(ctx, c, eden))
	end := runController(c, gardens)
	defer end()
	check(kube.Create(ctx, c, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "soil"}, Data: map[string]string{"kind": "loam"},
	}))
	fmt.Println(<-reconciled)
	// Output:
	// eden: loam, shared by 1
}

// A predicate of one's own decides by the metadata which changes matter. The program keeps metadata decoded, so the
// predicate costs nearly nothing.
func ExampleWhen() {
	ctx, c := context.Background(), newServer().client()
	reconciled := make(chan string, 10)
	inSeason := func(change controller.Change) bool { return change.Record().Labels.Get("season") == "spring" }
	gardens := controller.New(func(_ context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
		reconciled <- g.Name
		return controller.Done(), nil
	}, controller.Reconciled(controller.When(inSeason, controller.Any(controller.GenerationChanged, controller.LabelsChanged))))

	for _, season := range []string{"autumn", "spring"} {
		g := garden("in-" + season)
		g.Labels = map[string]string{"season": season}
		check(kube.Create(ctx, c, g))
	}
	end := runController(c, gardens)
	defer end()
	fmt.Println(<-reconciled)
	// Output:
	// in-spring
}

// A source triggers reconciles for what no object in the cluster shows, such as a message of a service.
func ExampleFrom() {
	ctx, c := context.Background(), newServer().client()
	messages := make(chan string)
	listen := func(ctx context.Context, emit func(controller.Trigger)) error {
		for {
			select {
			case name := <-messages:
				emit(controller.Trigger{Key: kube.Key{Namespace: "default", Name: name}, Cause: "a message of the weather service"})
			case <-ctx.Done():
				return nil
			}
		}
	}
	causes := make(chan string, 10)
	gardens := controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}, controller.From(listen), controller.OnResult(func(r controller.Result) { causes <- r.Causes }))

	check(kube.Create(ctx, c, garden("eden")))
	end := runController(c, gardens)
	defer end()
	fmt.Println(strings.Contains(<-causes, "there at the start"))
	messages <- "eden"
	fmt.Println(<-causes)
	// Output:
	// true
	// a message of the weather service
}
