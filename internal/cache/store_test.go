package cache

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

func TestIndex(t *testing.T) {
	t.Parallel()
	var reports []error
	s := alone(webApps, OnError(func(_ wire.Stream, err error) { reports = append(reports, err) }))
	insert := func(k kube.Key, version int) {
		s.apply(changeOf(small(k, "u", "")(version)))
		s.reportFailures()
	}
	insert(a, 1)
	byName := kube.NewIndex("name", func(w *samples.WebApp) []string {
		if w.Name == "bad" {
			panic("oh no")
		}
		return []string{w.Name}
	})
	for range 2 { // to repeat it does nothing
		if err := s.store.Index(byName); err != nil {
			t.Fatal(err)
		}
	}
	byPod := kube.NewIndex("pod", func(*corev1.Pod) []string { return nil })
	if err := s.store.Index(byPod); err == nil || !strings.Contains(err.Error(), "of pods (v1), not of webapps.example.com") {
		t.Errorf("an index of pods: %v", err)
	}
	metadata := webApps
	metadata.Representation = wire.MetadataOnly
	if err := alone(metadata).store.Index(byName); err == nil || !strings.Contains(err.Error(), "looks at more than the metadata") {
		t.Errorf("an index of metadata: %v", err)
	}
	insert(kube.Key{Namespace: "ns", Name: "bad"}, 2)
	if s.store.Len() != 2 || len(reports) != 1 || !strings.Contains(reports[0].Error(), "oh no") || !strings.Contains(reports[0].Error(), "webapps") {
		t.Errorf("%d objects, reports: %v", s.store.Len(), reports)
	}
	// The object for which the function panicked may have any value.
	if got := len(slices.Collect(s.store.All(Filter{Index: byName, Value: "a"}))); got != 2 {
		t.Errorf("%d objects under a", got)
	}
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "Store.Index") || !strings.Contains(p, "webapps") {
			t.Errorf("panic: %s", p)
		}
	}()
	for range s.store.All(Filter{Index: byPod}) {
		t.Error("an object of no index")
	}
}

// A stored object has the fields and the bytes that were sent.
func TestObject(t *testing.T) {
	t.Parallel()
	random := samples.New(1)
	s, sent := alone(pods), random.Pod(1)
	s.apply(changeOf(sent))
	want, err := readRecord(sent)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := s.store.Get(want.Key())
	if !ok || bytesOf(t, got) != sent {
		t.Errorf("stored: %t, as %+v", ok, got)
	}
	if len(got.Owners) != 1 || got.Owners[0].Kind != "ReplicaSet" || !got.Owners[0].Controller || got.Labels.Get("app") == "" || got.Labels != want.Labels || got.Size != len(sent) {
		t.Errorf("the record is %+v", got.Record)
	}
	if o, ok := s.store.Get(kube.Key{Name: "missing"}); ok || o.packed != nil {
		t.Errorf("an object that does not exist: %+v", o)
	}
	if _, err := (Object{}).Bytes(); err == nil {
		t.Error("the zero Object has bytes")
	}
}
