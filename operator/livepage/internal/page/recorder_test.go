package page

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

func resource(group, kind, plural string) wire.Resource {
	return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Plural: plural}
}

func widgets() wire.Resource { return resource("example.com", "Widget", "widgets") }

// record records a reconcile of a Widget with writes, each of which was answered with its body.
func record(r *Recorder, namespace, name, causes string, err error, writes ...*wire.Request) {
	key := kube.Key{Namespace: namespace, Name: name}
	for _, w := range writes {
		r.ObserveRequest("widget", key, w, cache.KnownState{}, &wire.Response{Code: http.StatusOK, Body: w.Body}, nil)
	}
	r.Result(controller.Result{
		Controller: "widget", Object: wire.Ref{Resource: widgets(), Namespace: namespace, Name: name}, Causes: causes,
		Duration: 3 * time.Millisecond, Err: err,
	})
}

// apply returns an apply of an object.
func apply(r wire.Resource, namespace, name, body string) *wire.Request {
	return &wire.Request{Verb: wire.VerbPatch, Resource: r, Namespace: namespace, Name: name, Body: []byte(body), ContentType: wire.ContentApply}
}

// newest returns the newest reconcile.
func newest(t *testing.T, r *Recorder) *reconcile {
	t.Helper()
	all, _, _ := r.history.reconcilesBetween(0, 0, 1, func(*reconcile) bool { return true })
	if len(all) == 0 {
		t.Fatal("there is no reconcile")
	}
	return all[0]
}

func TestRecorder(t *testing.T) {
	t.Parallel()
	r := NewRecorder(nil)
	key := kube.Key{Namespace: "default", Name: "one"}
	configMap := apply(resource("", "ConfigMap", "configmaps"), "default", "one", `{"data":{"text":"hello"}}`)
	read := &wire.Request{Verb: wire.VerbGet, Resource: resource("", "ConfigMap", "configmaps"), Namespace: "default", Name: "settings"}
	r.ObserveRequest("widget", key, read, cache.KnownState{}, &wire.Response{Cached: true}, nil)
	r.ObserveRequest("widget", key, configMap, cache.KnownState{IsCertain: true}, &wire.Response{Code: 201, Body: configMap.Body}, nil)
	r.ObserveRequest("widget", key, configMap, cache.KnownState{}, &wire.Response{Code: 200, Cached: true}, nil)
	r.ObserveRequest("widget", key, configMap, cache.KnownState{}, nil, errors.New("refused"))
	// A request of another object's reconcile, which runs at the same time.
	r.ObserveRequest("widget", kube.Key{Namespace: "default", Name: "two"}, configMap, cache.KnownState{}, &wire.Response{Body: configMap.Body}, nil)
	record(r, "default", "one", "Widget default/one added", errors.New("a bad day"))

	got := newest(t, r)
	if len(got.Writes) != 3 || !got.Writes[0].IsCreated || !got.Writes[1].IsSkipped || got.Writes[2].Error != "refused" {
		t.Errorf("the writes are %+v", got.Writes)
	}
	if fields := got.Writes[0].Difference.Fields; len(fields) != 1 || fields[0] != (fieldChange{".data.text", "", `"hello"`}) {
		t.Errorf("the fields are %v", fields)
	}
	if len(got.Reads) != 1 || !strings.Contains(got.Reads[0], `get configmaps "default/settings"`) {
		t.Errorf("the reads are %q", got.Reads)
	}
	if got.Error != "a bad day" || got.Number != 1 {
		t.Errorf("it is %+v", got)
	}
	record(r, "default", "one", "retry", nil)
	if after := newest(t, r); len(after.Writes) != 0 || len(r.history.failingObjects()) != 0 {
		t.Errorf("the next one has the writes %+v, and %d objects fail", after.Writes, len(r.history.failingObjects()))
	}
}

// Nothing of a Secret, a token or a review of a token is kept: neither what was sent nor what was answered.
func TestSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	const secret = "cGFzc3dvcmQ"
	body := `{"apiVersion":"v1","metadata":{"name":"s","annotations":{"copy":"` + secret + `"}},"data":{"password":"` + secret + `"},"spec":{"token":"` + secret + `"},"status":{"token":"` + secret + `","conditions":[{"type":"` + secret + `","status":"True"}]}}`
	token := apply(resource("", "ServiceAccount", "serviceaccounts"), "default", "s", body)
	token.Verb, token.Subresource = wire.VerbCreate, "token"
	r := NewRecorder(nil)
	for _, w := range []*wire.Request{
		apply(resource("", "Secret", "secrets"), "default", "s", body),
		{Verb: wire.VerbCreate, Resource: resource("", "Secret", "secrets"), Namespace: "default", Body: []byte(body)},
		{Verb: wire.VerbUpdate, Resource: resource("", "Secret", "secrets"), Namespace: "default", Name: "s", Body: []byte(body)},
		token,
		{Verb: wire.VerbCreate, Resource: resource("authentication.k8s.io", "TokenReview", "tokenreviews"), Body: []byte(body)},
	} {
		record(r, "default", "one", "Widget default/one added", nil, w)
		got := newest(t, r)
		if len(got.Writes) != 1 || !got.Writes[0].IsConfidential {
			t.Errorf("%s is not confidential: %+v", w.Resource, got.Writes)
		}
		m := new(markup)
		reconcileView{history: r.history}.writeRow(m, got)
		if strings.Contains(m.String(), secret) || strings.Contains(fmt.Sprintf("%+v %+v", got, *got.Writes[0]), secret) {
			t.Errorf("%s: the secret is kept: %s", w.Resource, m)
		}
		if !strings.Contains(m.String(), `<span class="badge">changed</span>`) {
			t.Errorf("%s: the page does not say that it has changed: %s", w.Resource, m)
		}
	}
}

// The history takes one megabyte at most, whatever reconciles do. It does not run in parallel, because it measures memory.
func TestHistoryTakesOneMegabyte(t *testing.T) {
	for name, size := range map[string]int{"many small reconciles": 1, "few large ones": 400} {
		t.Run(name, func(t *testing.T) {
			r := NewRecorder(nil)
			before := heapBytes()
			count := 3 * maxReconciles / size
			for i := range count {
				object := fmt.Sprintf("object-%d", i)
				var writes []*wire.Request
				for j := range size / 20 {
					fields := make([]string, 0, size)
					for k := range size {
						fields = append(fields, fmt.Sprintf(`"%d":%q`, k, strings.Repeat("x", size)))
					}
					writes = append(writes, apply(widgets(), "default", fmt.Sprint(object, j), "{"+strings.Join(fields, ",")+"}"))
				}
				var err error
				if i%3 == 0 {
					err = errors.New(strings.Repeat("e", 10*size))
				}
				record(r, "default", object, "Widget default/"+object+" added"+strings.Repeat(" ", size), err, writes...)
			}
			taken := heapBytes() - before
			kept, _, _ := r.history.reconcilesBetween(0, 0, count, func(*reconcile) bool { return true })
			t.Logf("%d of %d reconciles take %d bytes", len(kept), count, taken)
			if taken > 1<<20 {
				t.Errorf("the history takes %d bytes", taken)
			}
			if size == 1 && len(kept) < 1000 {
				t.Errorf("only %d reconciles are kept", len(kept))
			}
			runtime.KeepAlive(r)
		})
	}
}

// heapBytes returns the live bytes of the heap.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func TestReconcilesBetween(t *testing.T) {
	t.Parallel()
	h := new(history)
	for i := range maxReconciles + 10 {
		h.addReconcile(&reconcile{Object: objectName{"Widget", "", fmt.Sprint(i % 2)}})
	}
	last := uint64(maxReconciles + 10)
	first := last - uint64(len(h.reconciles)) + 1
	all := func(*reconcile) bool { return true }
	for _, test := range []struct {
		after, before uint64
		limit         int
		keep          func(*reconcile) bool
		want          []uint64
		isMore        bool
		missedCount   uint64
	}{
		{after: last, limit: 3, keep: all},
		{after: last - 2, limit: 3, keep: all, want: []uint64{last, last - 1}},
		{after: last - 9, limit: 2, keep: all, want: []uint64{last, last - 1}, isMore: true},
		{before: last, limit: 1, keep: all, want: []uint64{last - 1}, isMore: true},
		{limit: 2, keep: func(r *reconcile) bool { return r.Number%2 == 0 }, want: []uint64{last, last - 2}, isMore: true},
		{before: first + 2, limit: 5, keep: all, want: []uint64{first + 1, first}},
		{after: first - 4, before: first + 1, limit: 5, keep: all, want: []uint64{first}, missedCount: 3},
	} {
		found, isMore, missedCount := h.reconcilesBetween(test.after, test.before, test.limit, test.keep)
		var numbers []uint64
		for _, r := range found {
			numbers = append(numbers, r.Number)
		}
		if fmt.Sprint(numbers) != fmt.Sprint(test.want) || isMore != test.isMore || missedCount != test.missedCount {
			t.Errorf("after %d before %d: %v, more %t, missed %d; want %v, %t, %d", test.after, test.before, numbers, isMore, missedCount, test.want, test.isMore, test.missedCount)
		}
	}
}

// A reconcile whose writes beyond the shown ones changed nothing was once shown as a change.
func TestManySkippedWritesAreNoChange(t *testing.T) {
	t.Parallel()
	r := NewRecorder(nil)
	key := kube.Key{Namespace: "default", Name: "one"}
	configMap := apply(resource("", "ConfigMap", "configmaps"), "default", "one", `{}`)
	for range maxWrites + 1 {
		r.ObserveRequest("widget", key, configMap, cache.KnownState{}, &wire.Response{Code: 200, Cached: true}, nil)
	}
	record(r, "default", "one", "Widget default/one added", nil)
	if got := newest(t, r); got.HasChanged || got.MoreWrites != 1 {
		t.Errorf("changed is %t, and %d writes are not shown", got.HasChanged, got.MoreWrites)
	}

	for range maxWrites {
		r.ObserveRequest("widget", key, configMap, cache.KnownState{}, &wire.Response{Code: 200, Cached: true}, nil)
	}
	r.ObserveRequest("widget", key, configMap, cache.KnownState{IsCertain: true}, &wire.Response{Code: 201, Body: configMap.Body}, nil)
	record(r, "default", "one", "Widget default/one added", nil)
	if !newest(t, r).HasChanged {
		t.Error("a write that is not shown is no change")
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	changed := &reconcile{Object: objectName{"Widget", "default", "Hello-World"}, Causes: "Deployment default/web modified", Writes: []*write{{}}, HasChanged: true}
	failed := &reconcile{Object: objectName{"Gadget", "other", "x"}, Causes: "retry", Error: "no", Writes: []*write{{IsSkipped: true}, {Error: "no"}}}
	for query, want := range map[string]string{
		"": "changed failed", "kind=Widget": "changed", "namespace=other": "failed", "namespace=oth": "",
		"name=hello": "changed", "name=+hello+": "changed", "cause=deployment": "changed", "show=changed": "changed", "show=failed": "failed",
		"kind=Gadget&cause=retry": "failed", "kind=Widget&show=failed": "",
	} {
		values, err := parseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f, got := filterOf(values), []string{}
		if f.matches(changed) {
			got = append(got, "changed")
		}
		if f.matches(failed) {
			got = append(got, "failed")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q selects %q, want %q", query, got, want)
		}
	}
}

// The page names the fields that are set back again and again, with who changes them. There are 20 at most.
func TestContestedFields(t *testing.T) {
	t.Parallel()
	recorder, _, server := newTestPage(t)
	if text := get(t, server, Path).text; strings.Contains(text, "Contested") {
		t.Error("the page shows contested fields of a program without any")
	}
	for i := range 30 {
		object := wire.Ref{Resource: widgets(), Namespace: "shop", Name: fmt.Sprint("w", i)}
		recorder.ObserveSetBack(object, contested.Field{Path: ".spec.size", Manager: "<scaler>"}, true)
		recorder.ObserveSetBack(object, contested.Field{Path: ".spec.once", Manager: "user"}, false)
	}
	text := get(t, server, Path).text
	if n := strings.Count(text, "<td>.spec.size</td><td>&lt;scaler&gt;</td>"); n != 20 || strings.Contains(text, ".spec.once") || !strings.Contains(text, "w29") {
		t.Errorf("the page has %d contested fields:\n%s", n, text)
	}
}
