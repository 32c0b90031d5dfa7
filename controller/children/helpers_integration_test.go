package children_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller/children"
	"github.com/yare-go/yare/controller/internal/owned"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// Shop owns what its spec lists.
type Shop = kube.CustomResource[ShopSpec, kube.None]

type ShopSpec struct {
	// Maps and Secrets name the children.
	Maps    []string `json:"maps,omitempty"`
	Secrets []string `json:"secrets,omitempty"`
	// Waits is true while a reconcile must return before it applies anything.
	Waits bool `json:"waits,omitempty"`
}

func (ShopSpec) Definition() kube.Definition {
	return kube.Definition{Group: "children.example.com", Version: "v1", Kind: "Shop"}
}

// street is a namespace of a real server with shops.
type street struct {
	*testing.T
	cluster   *yaretest.Cluster
	client    *kube.Client
	namespace string
	// ctx is the context of the reconciles of a controller that owns ConfigMaps and Secrets.
	ctx context.Context
	log *recordedLog
	*recordedEvents
}

func onStreet(t *testing.T) *street {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a control plane")
	}
	t.Parallel()
	s := &street{T: t, cluster: yaretest.Shared(t), log: new(recordedLog), recordedEvents: new(recordedEvents)}
	yaretest.Define[Shop](t, s.cluster)
	s.namespace = s.cluster.Namespace(t)
	s.client = s.cluster.Client(t).WithFieldManager("shop").InNamespaces(s.namespace)
	s.ctx = logctx.With(t.Context(), slog.New(s.log))
	s.ctx = owned.With(s.ctx, &owned.Controller{
		Events: s.recordedEvents, Kinds: []owned.Kind{{Resource: resourceOf[corev1.ConfigMap](t)}, {Resource: resourceOf[corev1.Secret](t)}},
	})
	return s
}

func resourceOf[T any, P kube.ObjectOf[T]](t *testing.T) wire.Resource {
	t.Helper()
	r, err := kube.ResourceOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func create[T any, P kube.ObjectOf[T]](t *testing.T, c *kube.Client, obj *T) *T {
	t.Helper()
	created, err := kube.Everywhere[T, P](c).Create(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// shop creates a Shop.
func (s *street) shop(name string) *Shop {
	s.Helper()
	return create(s.T, s.client, &Shop{ObjectMeta: s.named(name)})
}

func (s *street) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

// maps returns ConfigMaps of these names.
func (s *street) maps(names ...string) (all []kube.Object) {
	for _, name := range names {
		all = append(all, &corev1.ConfigMap{ObjectMeta: s.named(name), Data: map[string]string{"greeting": "hello"}})
	}
	return all
}

// apply applies ConfigMaps of these names as the set.
func (s *street) apply(set children.Set, owner kube.Object, names ...string) {
	s.Helper()
	if _, err := set.Apply(s.ctx, s.client, owner, s.maps(names...)...); err != nil {
		s.Fatal(err)
	}
}

// wantMaps checks which ConfigMaps there are.
func (s *street) wantMaps(want ...string) {
	s.Helper()
	all, err := kube.List[corev1.ConfigMap](s.Context(), s.client, s.namespace)
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, each := range all {
		if each.Name != "kube-root-ca.crt" {
			got = append(got, each.Name)
		}
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		s.Errorf("the ConfigMaps are %q, want %q", got, want)
	}
}

// recordedLog records log lines.
type recordedLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *recordedLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *recordedLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *recordedLog) WithGroup(string) slog.Handler            { return l }
func (l *recordedLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.lines = append(l.lines, line)
	return nil
}

// count returns how many lines have the text.
func (l *recordedLog) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// recordedEvents records events.
type recordedEvents struct {
	mu     sync.Mutex
	events []string
}

func (e *recordedEvents) Warning(obj kube.Object, reason, _, _ string, _ ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, reason+" "+obj.GetName())
}

// drain returns the events so far, and forgets them.
func (e *recordedEvents) drain() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	events := e.events
	e.events = nil
	return events
}
