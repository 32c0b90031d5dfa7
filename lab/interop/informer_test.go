package interop

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/clientgo"
	"github.com/yare-go/yare/yaretest"
)

// withoutStreaming is a ListerWatcher as clients have it that do not use streaming lists: the first
// list is one of version 0.
type withoutStreaming struct{ *cache.ListWatch }

func (withoutStreaming) IsWatchListSemanticsUnSupported() bool { return true }

// startReflector runs a reflector of client-go for the metadata of Secrets in all namespaces, through a
// proxy. It asks for protobuf first, as client-go does. The returned function returns the names that
// the reflector knows.
func startReflector(t *testing.T, p *faults.InjectingProxy, isStreaming bool) (names func() []string) {
	t.Helper()
	session, err := p.NewSession("reflector")
	if err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(clientgo.ToREST(session.Config()))
	if err != nil {
		t.Fatal(err)
	}
	secrets := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return secrets.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return secrets.Watch(ctx, options)
		},
	}
	var source cache.ListerWatcher = list
	if !isStreaming {
		source = withoutStreaming{list}
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, store, cache.ReflectorOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { reflector.RunWithContext(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return func() []string {
		var names []string
		for _, each := range store.List() {
			names = append(names, each.(*metav1.PartialObjectMetadata).Name)
		}
		return names
	}
}

// TestFaultsOfReflector checks that a reflector of client-go works through the proxy of
// explorations: it sees the past if it asks for it, and recovers from states that it missed.
func TestFaultsOfReflector(t *testing.T) {
	t.Parallel()
	for name, isStreaming := range map[string]bool{"list and watch": false, "streaming list": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := yaretest.Shared(t)
			namespace := cluster.Namespace(t)
			secrets := kube.Namespaced[corev1.Secret](cluster.Client(t), namespace)
			create := func(name string) {
				t.Helper()
				if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
					t.Fatal(err)
				}
			}
			p, err := faults.New(faults.Options{Target: cluster.Config(), Namespace: namespace})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			begin := func(step int, f faults.Fault) *faults.Armed {
				t.Helper()
				if err := p.BeginStep(t.Context(), step); err != nil {
					t.Fatal(err)
				}
				f.Step = step
				a, err := p.Injector.Arm(f)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}

			create("old")
			stale := begin(0, faults.Fault{Kind: faults.Stale})
			create("new")
			names := startReflector(t, p, isStreaming)
			yaretest.Eventually(t, func() error { return wantName(names(), "old", true) })
			if isStreaming {
				yaretest.Eventually(t, func() error { return wantName(names(), "new", true) })
				select {
				case <-stale.Triggered():
					t.Error("the past was shown to a client that asked for the present")
				default:
				}
			} else {
				<-stale.Triggered()
				yaretest.Eventually(t, func() error { return wantHeld(p, 1) })
				if slices.Contains(names(), "new") {
					t.Errorf("in the past, the reflector knows %v", names())
				}
				p.Injector.Disarm()
				yaretest.Eventually(t, func() error { return wantName(names(), "new", true) })
			}

			missed := begin(1, faults.Fault{Kind: faults.WatchMissed, Stream: "secrets"})
			create("missed")
			for _, name := range []string{"missed", "old"} {
				if err := secrets.Delete(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			<-missed.Triggered()
			yaretest.Eventually(t, func() error { return wantHeld(p, 3) })
			if !slices.Contains(names(), "old") {
				t.Errorf("while its watch is held, the reflector knows %v", names())
			}
			p.Injector.Disarm()
			yaretest.Eventually(t, func() error { return wantName(names(), "old", false) })
			create("last")
			yaretest.Eventually(t, func() error { return wantName(names(), "last", true) })
			if !slices.ContainsFunc(p.Requests(), func(r proxy.RequestRecord) bool { return r.Point.Verb == "watch" && r.Point.Step == 1 }) {
				t.Errorf("the reflector has not watched again: %v", p.Requests())
			}
		})
	}
}

// wantName returns an error unless name is one of names, or is not if want is false.
func wantName(names []string, name string, want bool) error {
	if slices.Contains(names, name) != want {
		return fmt.Errorf("the reflector knows %v, and %s should be there: %t", names, name, want)
	}
	return nil
}

// wantHeld returns an error unless the proxy holds n events.
func wantHeld(p *faults.InjectingProxy, n int) error {
	if held := p.Activity().Held; held != n {
		return fmt.Errorf("the proxy holds %d events, want %d", held, n)
	}
	return nil
}
