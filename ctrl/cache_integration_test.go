package ctrl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/yare-go/yare/ctrl"
	"github.com/yare-go/yare/kube/clientgo"
	"github.com/yare-go/yare/yaretest"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// forBoth runs a test with the cache of controller-runtime and with that of yare: what one does, the other does too.
func forBoth(t *testing.T, test func(t *testing.T, config *rest.Config, newCache ctrlcache.NewCacheFunc)) {
	config := clientgo.ToREST(yaretest.Shared(t).Config())
	bridge, err := ctrl.ForConfig(config)
	must(t, err)
	for name, newCache := range map[string]ctrlcache.NewCacheFunc{"theirs": ctrlcache.New, "yare": bridge.NewCache} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, config, newCache)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a cache, which ends with the test.
func start(t *testing.T, c ctrlcache.Cache) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the cache ended with: %v", err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync")
	}
}

func configMap(namespace, name, owner string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"owner": owner}},
		Data:       map[string]string{"owner": owner, "colour": "red"},
	}
}

func namesIn(list *corev1.ConfigMapList) string {
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestReads(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, config *rest.Config, newCache ctrlcache.NewCacheFunc) {
		ctx, one, two := t.Context(), yaretest.Shared(t).Namespace(t), yaretest.Shared(t).Namespace(t)
		direct, err := client.New(config, client.Options{})
		must(t, err)
		for _, object := range []*corev1.ConfigMap{
			configMap(one, "a", "x"), configMap(one, "b", "y"), configMap(two, "c", "x"), configMap(two, "d", "z"),
		} {
			must(t, direct.Create(ctx, object))
		}
		mine, err := labels.Parse("owner in (x,y,z)")
		must(t, err)
		c, err := newCache(config, ctrlcache.Options{ByObject: map[client.Object]ctrlcache.ByObject{&corev1.ConfigMap{}: {Label: mine}}})
		must(t, err)
		if err := c.Get(ctx, client.ObjectKey{Namespace: one, Name: "a"}, new(corev1.ConfigMap)); err == nil || !strings.Contains(err.Error(), "not started") {
			t.Errorf("before the start: %v", err)
		}
		must(t, c.IndexField(ctx, new(corev1.ConfigMap), "data.owner", func(o client.Object) []string {
			return []string{o.(*corev1.ConfigMap).Data["owner"]}
		}))
		start(t, c)
		must(t, c.IndexField(ctx, new(corev1.ConfigMap), "data.colour", func(o client.Object) []string {
			return []string{o.(*corev1.ConfigMap).Data["colour"]}
		}))

		var got corev1.ConfigMap
		must(t, c.Get(ctx, client.ObjectKey{Namespace: one, Name: "a"}, &got))
		if got.Kind != "ConfigMap" || got.Data["owner"] != "x" || got.UID == "" {
			t.Errorf("a Get returned %+v", got)
		}
		got.Data["owner"] = "changed" // in a copy
		if err := c.Get(ctx, client.ObjectKey{Namespace: one, Name: "none"}, &got); !apierrors.IsNotFound(err) {
			t.Errorf("a Get of no object: %v", err)
		}
		// The root CA of each Namespace has no label.
		if err := c.Get(ctx, client.ObjectKey{Namespace: one, Name: "kube-root-ca.crt"}, &got); !apierrors.IsNotFound(err) {
			t.Errorf("a Get of an object that is not selected: %v", err)
		}
		untyped := new(unstructured.Unstructured)
		untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		must(t, c.Get(ctx, client.ObjectKey{Namespace: one, Name: "a"}, untyped))
		if owner, _, _ := unstructured.NestedString(untyped.Object, "data", "owner"); owner != "x" || untyped.GetKind() != "ConfigMap" {
			t.Errorf("unstructured: %v", untyped.Object)
		}
		partial := new(metav1.PartialObjectMetadata)
		partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		must(t, c.Get(ctx, client.ObjectKey{Namespace: one, Name: "a"}, partial))
		if partial.Labels["owner"] != "x" || partial.Kind != "ConfigMap" {
			t.Errorf("metadata: %+v", partial)
		}

		for name, test := range map[string]struct {
			options []client.ListOption
			want    string
		}{
			"a namespace":           {[]client.ListOption{client.InNamespace(one)}, "a b"},
			"labels":                {[]client.ListOption{client.InNamespace(one), client.MatchingLabels{"owner": "y"}}, "b"},
			"an index":              {[]client.ListOption{client.InNamespace(two), client.MatchingFields{"data.owner": "x"}}, "c"},
			"an index and labels":   {[]client.ListOption{client.InNamespace(two), client.MatchingFields{"data.colour": "red"}, client.MatchingLabels{"owner": "z"}}, "d"},
			"two indexes":           {[]client.ListOption{client.InNamespace(two), client.MatchingFields{"data.owner": "z", "data.colour": "red"}}, "d"},
			"an index with no such": {[]client.ListOption{client.InNamespace(one), client.MatchingFields{"data.owner": "z"}}, ""},
		} {
			var list corev1.ConfigMapList
			must(t, c.List(ctx, &list, test.options...))
			if names := namesIn(&list); names != test.want {
				t.Errorf("%s: %s", name, names)
			}
		}
		var list corev1.ConfigMapList
		must(t, c.List(ctx, &list, client.InNamespace(one), client.Limit(1)))
		if len(list.Items) != 1 || list.Items[0].Kind != "ConfigMap" {
			t.Errorf("with a limit: %+v", list.Items)
		}
		untypedList := new(unstructured.UnstructuredList)
		untypedList.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		must(t, c.List(ctx, untypedList, client.InNamespace(two)))
		partialList := new(metav1.PartialObjectMetadataList)
		partialList.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		must(t, c.List(ctx, partialList, client.InNamespace(two)))
		if len(untypedList.Items) != 2 || len(partialList.Items) != 2 {
			t.Errorf("unstructured: %d, metadata: %d", len(untypedList.Items), len(partialList.Items))
		}
		for name, option := range map[string]client.ListOption{
			"no such index": client.MatchingFields{"data.none": "x"}, "a token of a page": client.Continue("next"),
		} {
			if err := c.List(ctx, &list, option); err == nil {
				t.Errorf("%s is no error", name)
			}
		}
	})
}

func TestNamespacesOfACache(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, config *rest.Config, newCache ctrlcache.NewCacheFunc) {
		ctx := t.Context()
		var namespaces []string
		direct, err := client.New(config, client.Options{})
		must(t, err)
		for _, name := range []string{"a", "b", "c"} {
			namespaces = append(namespaces, yaretest.Shared(t).Namespace(t))
			must(t, direct.Create(ctx, configMap(namespaces[len(namespaces)-1], name, "x")))
		}
		c, err := newCache(config, ctrlcache.Options{DefaultNamespaces: map[string]ctrlcache.Config{namespaces[0]: {}, namespaces[1]: {}}})
		must(t, err)
		start(t, c)
		var list corev1.ConfigMapList
		must(t, c.List(ctx, &list, client.MatchingLabels{"owner": "x"}))
		if names := namesIn(&list); names != "a b" {
			t.Errorf("all namespaces: %s", names)
		}
		must(t, c.List(ctx, &list, client.MatchingLabels{"owner": "x"}, client.InNamespace(namespaces[1])))
		if names := namesIn(&list); names != "b" {
			t.Errorf("one namespace: %s", names)
		}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespaces[2], Name: "c"}, new(corev1.ConfigMap)); err == nil {
			t.Error("an object of another namespace was read")
		}
		if err := c.List(ctx, &list, client.InNamespace(namespaces[2])); err == nil {
			t.Error("another namespace was listed")
		}
		// A cluster-scoped kind has no namespaces.
		must(t, c.Get(ctx, client.ObjectKey{Name: namespaces[0]}, new(corev1.Namespace)))
	})
}

// recorder writes down the events of a handler.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) OnAdd(o any, isInitial bool) {
	object := o.(*corev1.ConfigMap)
	r.add("+%s %s %t", object.Name, object.Data["owner"], isInitial)
}

func (r *recorder) OnUpdate(before, after any) {
	a, b := before.(*corev1.ConfigMap), after.(*corev1.ConfigMap)
	r.add("~%s %s→%s", b.Name, a.Data["owner"], b.Data["owner"])
}

func (r *recorder) OnDelete(o any) { r.add("-%s", o.(*corev1.ConfigMap).Name) }

func (r *recorder) expect(t *testing.T, want ...string) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if diff := cmp.Diff(want, r.events); diff != "" {
			return fmt.Errorf("the events differ: %s", diff)
		}
		return nil
	})
}

func TestEventHandlers(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, config *rest.Config, newCache ctrlcache.NewCacheFunc) {
		ctx, namespace := t.Context(), yaretest.Shared(t).Namespace(t)
		direct, err := client.New(config, client.Options{})
		must(t, err)
		a := configMap(namespace, "a", "x")
		must(t, direct.Create(ctx, a))
		c, err := newCache(config, ctrlcache.Options{
			DefaultNamespaces: map[string]ctrlcache.Config{namespace: {LabelSelector: labels.SelectorFromSet(labels.Set{"owner": "x"})}},
		})
		must(t, err)
		informer, err := c.GetInformer(ctx, new(corev1.ConfigMap))
		must(t, err)
		early, late := new(recorder), new(recorder)
		_, err = informer.AddEventHandler(early)
		must(t, err)
		start(t, c)
		early.expect(t, "+a x true")
		a.Data["owner"] = "new"
		must(t, direct.Update(ctx, a))
		early.expect(t, "+a x true", "~a x→new")
		registration, err := informer.AddEventHandler(late)
		must(t, err)
		yaretest.Eventually(t, func() error {
			if !registration.HasSynced() || !toolscache.IsDone(registration.HasSyncedChecker()) {
				return fmt.Errorf("the handler is not synced")
			}
			return nil
		})
		late.expect(t, "+a new true")
		must(t, informer.RemoveEventHandler(registration))
		a.Labels["owner"] = "y" // is not selected any more
		must(t, direct.Update(ctx, a))
		early.expect(t, "+a x true", "~a x→new", "-a")
		late.expect(t, "+a new true")
		must(t, c.RemoveInformer(ctx, new(corev1.ConfigMap)))
		yaretest.Eventually(t, func() error {
			if !informer.IsStopped() {
				return fmt.Errorf("the informer goes on")
			}
			return nil
		})
		if _, err := informer.AddEventHandler(late); err == nil {
			t.Error("a stopped informer takes a handler")
		}
		// A read makes another informer.
		must(t, c.List(ctx, new(corev1.ConfigMapList)))
	})
}

func TestHandlersGetAllObjectsAgain(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, config *rest.Config, newCache ctrlcache.NewCacheFunc) {
		ctx, namespace := t.Context(), yaretest.Shared(t).Namespace(t)
		direct, err := client.New(config, client.Options{})
		must(t, err)
		must(t, direct.Create(ctx, configMap(namespace, "a", "x")))
		c, err := newCache(config, ctrlcache.Options{
			DefaultNamespaces: map[string]ctrlcache.Config{namespace: {LabelSelector: labels.SelectorFromSet(labels.Set{"owner": "x"})}},
			SyncPeriod:        new(2 * time.Second),
		})
		must(t, err)
		start(t, c)
		informer, err := c.GetInformer(ctx, new(corev1.ConfigMap))
		must(t, err)
		again := new(recorder)
		_, err = informer.AddEventHandler(again)
		must(t, err)
		yaretest.Eventually(t, func() error {
			again.mu.Lock()
			defer again.mu.Unlock()
			if len(again.events) < 3 {
				return fmt.Errorf("the events are %q", again.events)
			}
			return nil
		})
		if want := []string{"+a x true", "~a x→x", "~a x→x"}; !slices.Equal(again.events[:3], want) {
			t.Errorf("the events are %q", again.events)
		}
	})
}

func TestTransform(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, config *rest.Config, newCache ctrlcache.NewCacheFunc) {
		ctx, namespace := t.Context(), yaretest.Shared(t).Namespace(t)
		direct, err := client.New(config, client.Options{})
		must(t, err)
		must(t, direct.Create(ctx, configMap(namespace, "a", "x")))
		c, err := newCache(config, ctrlcache.Options{DefaultTransform: ctrlcache.TransformStripManagedFields()})
		must(t, err)
		start(t, c)
		var got corev1.ConfigMap
		must(t, c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "a"}, &got))
		if len(got.ManagedFields) > 0 || got.Data["owner"] != "x" {
			t.Errorf("a Get returned %+v", got)
		}
	})
}

func TestOptionsWithoutCounterpart(t *testing.T) {
	t.Parallel()
	config := clientgo.ToREST(yaretest.Shared(t).Config())
	bridge, err := ctrl.ForConfig(config)
	must(t, err)
	for name, options := range map[string]ctrlcache.Options{
		"NewInformer":              {NewInformer: toolscache.NewSharedIndexInformer},
		"DefaultWatchErrorHandler": {DefaultWatchErrorHandler: toolscache.DefaultWatchErrorHandler},
	} {
		if _, err := bridge.NewCache(config, options); err == nil || !strings.Contains(err.Error(), "cache.Options."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := bridge.NewCache(config, ctrlcache.Options{ReaderFailOnMissingInformer: true})
	must(t, err)
	start(t, c)
	var missing *ctrlcache.ErrResourceNotCached
	if err := c.List(t.Context(), new(corev1.ConfigMapList)); !errors.As(err, &missing) {
		t.Errorf("a kind without an informer: %v", err)
	}
	informer, err := c.GetInformer(t.Context(), new(corev1.ConfigMap))
	must(t, err)
	if err := informer.AddIndexers(toolscache.Indexers{}); err == nil {
		t.Error("indexers of client-go are no error")
	}
	partial := new(metav1.PartialObjectMetadata)
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := c.IndexField(t.Context(), partial, "x", func(client.Object) []string { return nil }); err == nil {
		t.Error("an index of metadata is no error")
	}
}

// Libraries such as the controllers of Cluster API ask an informer for its store, and wait until the store has the version
// that they have written.
func TestStoreOfInformer(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, config *rest.Config, newCache ctrlcache.NewCacheFunc) {
		ctx, namespace := t.Context(), yaretest.Shared(t).Namespace(t)
		direct, err := client.New(config, client.Options{})
		must(t, err)
		c, err := newCache(config, ctrlcache.Options{})
		must(t, err)
		found, err := c.GetInformer(ctx, new(corev1.ConfigMap), ctrlcache.BlockUntilSynced(false))
		must(t, err)
		informer, ok := found.(toolscache.SharedIndexInformer)
		if !ok {
			t.Fatalf("the informer is a %T", found)
		}
		store := informer.GetStore()
		if version := store.LastStoreSyncResourceVersion(); version != "" {
			t.Errorf("before the start the store has the version %q", version)
		}
		start(t, c)
		wanted := configMap(namespace, "a", "x")
		must(t, direct.Create(ctx, wanted))
		yaretest.Eventually(t, func() error {
			switch order, err := resourceversion.CompareResourceVersion(store.LastStoreSyncResourceVersion(), wanted.ResourceVersion); {
			case err != nil:
				return err
			case order < 0:
				return errors.New("the store is behind")
			}
			return nil
		})
		got, exists, err := store.GetByKey(namespace + "/a")
		if err != nil || !exists || got.(*corev1.ConfigMap).Data["owner"] != "x" {
			t.Errorf("by its key: %v %v %v", got, exists, err)
		}
		if got, exists, err := store.Get(wanted); err != nil || !exists || got.(*corev1.ConfigMap).UID != wanted.UID {
			t.Errorf("by the object: %v %v %v", got, exists, err)
		}
		if got, exists, err := store.GetByKey(namespace + "/none"); err != nil || exists {
			t.Errorf("no object: %v %v", got, err)
		}
		if keys := store.ListKeys(); !slices.Contains(keys, namespace+"/a") {
			t.Errorf("the keys are %v", keys)
		}
		if !slices.ContainsFunc(store.List(), func(o any) bool { return o.(*corev1.ConfigMap).UID == wanted.UID }) {
			t.Error("the list lacks the object")
		}
	})
}
