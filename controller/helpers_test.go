package controller_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Garden is what most tests reconcile.
type Garden = kube.CustomResource[GardenSpec, GardenStatus]

type GardenSpec struct {
	Size int `json:"size"`
}

type GardenStatus struct {
	Size int `json:"size,omitempty"`
}

func (GardenSpec) Definition() kube.Definition {
	return kube.Definition{Group: "test.example.com", Version: "v1", Kind: "Garden"}
}

// Country is cluster-scoped.
type Country = kube.CustomResource[CountrySpec, kube.None]

type CountrySpec struct{}

func (CountrySpec) Definition() kube.Definition {
	return kube.Definition{Group: "test.example.com", Version: "v1", Kind: "Country", ClusterScoped: true}
}

// Plant is a kind that Gardens own.
type Plant = kube.CustomResource[PlantSpec, PlantStatus]

type PlantSpec struct {
	Height int `json:"height"`
}

type PlantStatus struct {
	Height int `json:"height,omitempty"`
}

func (PlantSpec) Definition() kube.Definition {
	return kube.Definition{Group: "test.example.com", Version: "v1", Kind: "Plant"}
}

func garden(name string) *Garden {
	return &Garden{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: GardenSpec{Size: 1}}
}

func plant(name string) *Plant {
	return &Plant{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: PlantSpec{Height: 1}}
}

// journal records what is done with which object.
type journal struct {
	mu      sync.Mutex
	lines   []string
	results []controller.Result
}

func (j *journal) record(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// count returns the number of lines that were recorded since the last drain.
func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.lines)
}

// countOf returns the number of lines with a prefix that were recorded since the last drain.
func (j *journal) countOf(prefix string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, line := range j.lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// drain returns the lines that were recorded since the last drain.
func (j *journal) drain() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

func (j *journal) result(r controller.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.results = append(j.results, r)
}

func (j *journal) drainResults() []controller.Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	results := j.results
	j.results = nil
	return results
}

// part is a controller of any type.
type part interface {
	Needs() (kube.Needs, error)
	Start(context.Context, *controller.Runtime) error
}

// program is a running set of controllers on one server.
type program struct {
	caches *cache.Cache
	log    *logged
	stop   func() []error
}

// start runs controllers until stop, or the end of t.
func start(t *testing.T, client *kube.Client, parts ...part) *program {
	t.Helper()
	return startIn(context.Background(), t, client, parts...)
}

// startIn runs controllers in a context until stop, or the end of t.
func startIn(ctx context.Context, t *testing.T, client *kube.Client, parts ...part) *program {
	t.Helper()
	p := &program{caches: cache.New(client), log: new(logged)}
	rt := &controller.Runtime{Client: client, Cache: p.caches, Log: slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	errs := make([]error, len(parts))
	for i, each := range parts {
		running.Go(func() { errs[i] = each.Start(ctx, rt) })
	}
	p.stop = sync.OnceValue(func() []error {
		cancel()
		running.Wait()
		p.caches.Close()
		return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	})
	t.Cleanup(func() {
		for _, err := range p.stop() {
			t.Errorf("a controller ended with: %v", err)
		}
	})
	return p
}

// watches returns the option of a map function that neither reads nor fails.
func watches[S any, P kube.ObjectOf[S]](keys func(*S) []kube.Key, options ...controller.KindOption) controller.Option {
	if keys == nil {
		return controller.Watches[S, P](nil, options...)
	}
	return controller.Watches[S, P](func(_ context.Context, s *S, _ *kube.Client) ([]kube.Key, error) { return keys(s), nil }, options...)
}

// watchesMetadata does what watches does, for the metadata of a resource.
func watchesMetadata(r wire.Resource, keys func(*metav1.PartialObjectMetadata) []kube.Key, options ...controller.KindOption) controller.Option {
	return watches(keys, append(options, controller.Kind(r))...)
}

// logged is the text of a log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// lines returns the lines of a level.
func (l *logged) lines(level slog.Level) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "level="+level.String()) {
			lines = append(lines, line)
		}
	}
	return lines
}

// bubble runs a test with virtual time and a model of a server. It fails if a goroutine is
// left behind.
func bubble(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newServer()) })
}

func create[T any, P kube.ObjectOf[T]](t *testing.T, c *kube.Client, obj *T) *T {
	t.Helper()
	made, err := kube.Everywhere[T, P](c).Create(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func apply[T any, P kube.ObjectOf[T]](t *testing.T, c *kube.Client, obj *T) *T {
	t.Helper()
	applied, err := kube.Apply(t.Context(), c, P(obj))
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func remove(t *testing.T, c *kube.Client, obj kube.Object) {
	t.Helper()
	if err := c.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}
