package cache

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Promise 7. Several goroutines write with all verbs, in several namespaces, versions and
// representations, while others change the same objects, streams come and go, and their
// watches are held back, delayed, cut and lost. Whatever is read is at least as new as each
// write that was answered before the read began. At rest reads equal the server, and the
// overlay has nothing left that anybody needs.
func TestReadYourWritesModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runOverlay(t, seed, 600) })
		})
	}
}

func FuzzReadYourWrites(f *testing.F) {
	f.Add(uint64(1), uint16(300))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		synctest.Test(t, func(t *testing.T) { runOverlay(t, seed, int(steps%1000)) })
	})
}

// overlayRun is one run of the model.
type overlayRun struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	server *recordingServer
	caches *Cache
	client wire.Handler
	keys   []kube.Key

	mu sync.Mutex
	// floors are the versions that reads have to be at least as new as.
	floors      map[kube.Key]int
	hasReported bool
}

func beta(r wire.Resource) wire.Resource {
	r.Version = "v1beta1"
	return r
}

func runOverlay(t *testing.T, seed uint64, steps int) {
	random := rand.New(rand.NewPCG(seed, 7))
	server := newRecordingServer(rand.New(rand.NewPCG(seed, 8)))
	server.answersDeleteWithObject, server.hasGracePeriod = random.IntN(2) == 0, random.IntN(3) == 0
	run := &overlayRun{
		t: t, seed: seed, random: random, server: server, caches: New(server.streamHandler()), floors: make(map[kube.Key]int),
	}
	defer run.caches.Close()
	run.client = run.caches.Handler(server)
	for i := range 5 {
		run.keys = append(run.keys, kube.Key{Namespace: fmt.Sprint("n", i%2), Name: fmt.Sprint("o", i)})
	}
	streams := []wire.Stream{
		{Resource: webApps.Resource}, {Resource: webApps.Resource, Namespace: "n0"}, {Resource: webApps.Resource, Namespace: "n1"},
		{Resource: webApps.Resource, Representation: wire.MetadataOnly}, {Resource: beta(webApps.Resource)},
		{Resource: webApps.Resource, LabelSelector: "v=1"},
	}
	subs := make(map[int]*Subscription)
	toggle := func() {
		i := random.IntN(len(streams))
		if subs[i] != nil {
			subs[i].Close()
			delete(subs, i)
			return
		}
		sub, err := run.caches.Open(t.Context(), streams[i], func(Change) {})
		if err != nil {
			t.Fatal(err)
		}
		subs[i] = sub
	}
	for range 3 {
		toggle()
	}
	defer func() {
		for _, sub := range subs {
			sub.Close()
		}
	}()
	var working sync.WaitGroup
	some := func() bool { return random.IntN(2) == 0 }
	for range steps {
		switch n := random.IntN(100); {
		case n < 35:
			r := run.write()
			working.Go(func() { run.doWrite(r) })
		case n < 65:
			r := run.read()
			working.Go(func() { run.doRead(r) })
		case n < 75: // somebody else
			r := run.write()
			_, _, _ = server.serve(r)
		case n < 85:
			server.deliver(1+random.IntN(4), some)
		case n < 88:
			server.bookmark()
		case n < 90:
			server.cut(some(), some)
		case n < 92:
			toggle()
		case n < 94:
			server.kill(run.keys[random.IntN(len(run.keys))])
		case n < 95:
			time.Sleep(80 * time.Second)
		default:
			time.Sleep(time.Duration(random.IntN(4)) * time.Millisecond)
		}
		if random.IntN(3) == 0 {
			synctest.Wait()
		}
	}
	working.Wait()
	run.compareAtRest()
}

// compareAtRest waits until all requests and streams have ended their work, and compares what
// reads return with the server.
func (run *overlayRun) compareAtRest() {
	for range 40 {
		run.server.deliverAll()
		run.server.bookmark()
		run.server.deliverAll()
		time.Sleep(time.Minute)
		synctest.Wait()
	}
	run.server.random = nil
	for _, form := range []wire.Representation{wire.Full, wire.MetadataOnly} {
		for _, r := range []wire.Resource{webApps.Resource, beta(webApps.Resource)} {
			list := &wire.Request{Verb: wire.VerbList, Resource: r, Representation: form}
			for range 2 { // the first one may settle unknown states
				if _, err := run.client.Do(run.t.Context(), list); err != nil {
					run.t.Fatal(err)
				}
				run.server.bookmark()
				run.server.deliverAll()
				synctest.Wait()
			}
			response, err := run.client.Do(run.t.Context(), list)
			if err != nil {
				run.t.Fatal(err)
			}
			got := run.items(response)
			want := make(map[kube.Key]string)
			for k, o := range run.server.objects {
				want[k] = string(o.Metadata.UID) + "@" + o.Metadata.Version
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				run.t.Errorf("seed %d: at rest a list differs from the server:\n%s", run.seed, diff)
			}
		}
	}
	for range 10 { // for what no version is known of
		time.Sleep(2 * time.Minute)
		run.server.bookmark()
		run.server.deliverAll()
		synctest.Wait()
	}
	for _, k := range run.caches.overlayKeys() {
		run.caches.overlay.dropObserved(k)
	}
	for _, k := range run.caches.overlayKeys() {
		e, _ := run.caches.overlay.Get(k)
		run.t.Errorf("seed %d: at rest there is %s: %+v", run.seed, k.Name, e)
	}
	if before := run.server.requests; before > 0 {
		for _, k := range run.keys {
			for _, s := range run.caches.streams.snapshot() {
				if s.store.hasSelector() || s.id.Namespace != "" && s.id.Namespace != k.Namespace {
					continue
				}
				_, _ = run.client.Do(run.t.Context(), &wire.Request{
					Verb: wire.VerbGet, Resource: s.id.Resource, Representation: s.id.Representation, Namespace: k.Namespace, Name: k.Name,
				})
			}
		}
		if run.server.requests != before {
			run.t.Errorf("seed %d: at rest reads made %d requests", run.seed, run.server.requests-before)
		}
	}
}

func (run *overlayRun) items(response *wire.Response) map[kube.Key]string {
	if !response.Cached {
		var list struct {
			Items []state `json:"items"`
		}
		if err := kube.Unmarshal(response.Body, &list); err != nil {
			run.t.Fatal(err)
		}
		got := make(map[kube.Key]string)
		for _, o := range list.Items {
			got[kube.Key{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}] = string(o.Metadata.UID) + "@" + o.Metadata.Version
		}
		return got
	}
	got := make(map[kube.Key]string)
	for item, err := range response.Items {
		if err != nil {
			run.t.Fatal(err)
		}
		var o state
		if err := kube.Unmarshal(item, &o); err != nil {
			run.t.Fatal(err)
		}
		k := kube.Key{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
		if got[k] != "" {
			run.t.Errorf("seed %d: %s is in a list twice", run.seed, k)
		}
		got[k] = string(o.Metadata.UID) + "@" + o.Metadata.Version
	}
	return got
}

// write makes a write at random.
func (run *overlayRun) write() *wire.Request {
	random := run.random
	k := run.keys[random.IntN(len(run.keys))]
	r := &wire.Request{Verb: wire.VerbPatch, Resource: webApps.Resource, Namespace: k.Namespace, Name: k.Name, ContentType: wire.ContentMergePatch, Query: url.Values{}}
	if random.IntN(6) == 0 {
		r.Resource = beta(r.Resource)
	}
	metadata := map[string]any{"name": k.Name}
	body := map[string]any{"metadata": metadata, "spec": random.IntN(3), "status": random.IntN(3)}
	if random.IntN(2) == 0 {
		metadata["labels"] = map[string]string{"v": strconv.Itoa(random.IntN(2))}
	}
	switch n := random.IntN(20); n {
	case 0, 1, 2:
		r.Verb, r.Name = wire.VerbCreate, ""
		if n == 0 && random.IntN(3) == 0 {
			delete(metadata, "name")
			metadata["generateName"] = "g"
		}
	case 3, 4, 5, 6:
		r.ContentType = wire.ContentApply
	case 7:
		r.Verb = wire.VerbUpdate
	case 8:
		r.Subresource = "status"
	case 9:
		r.Subresource = "scale"
	case 10:
		r.Verb, r.Subresource, body = wire.VerbCreate, "eviction", nil
	case 11:
		metadata["finalizers"] = []string{"f"}
	case 12, 13:
		metadata["finalizers"] = []string{}
	case 14:
		r.Representation = wire.MetadataOnly
	case 15, 16, 17, 18:
		r.Verb, body = wire.VerbDelete, nil
	case 19:
		if random.IntN(4) == 0 {
			r.Verb, r.Name, body = wire.VerbDeleteCollection, "", nil
		}
	}
	if body != nil {
		r.Body, _ = kube.Marshal(body)
	}
	return r
}

// doWrite writes, and notes what reads have to show from now on.
func (run *overlayRun) doWrite(r *wire.Request) {
	_, err := run.client.Do(run.t.Context(), r)
	if e, ok := kube.AsError(err); ok && !e.Unknown {
		return // it was refused
	}
	effects := run.effects(r)
	run.mu.Lock()
	defer run.mu.Unlock()
	for k, at := range effects {
		run.floors[k] = max(run.floors[k], at)
	}
}

// effects returns the versions that the writes of a request have made.
func (run *overlayRun) effects(r *wire.Request) map[kube.Key]int {
	run.server.mu.Lock()
	defer run.server.mu.Unlock()
	effects := make(map[kube.Key]int)
	for _, done := range run.server.effects[r] {
		effects[done.key] = done.version
	}
	return effects
}

func (run *overlayRun) read() *wire.Request {
	random := run.random
	k := run.keys[random.IntN(len(run.keys))]
	r := &wire.Request{Verb: wire.VerbGet, Resource: webApps.Resource, Namespace: k.Namespace, Name: k.Name}
	if random.IntN(4) == 0 {
		r.Representation = wire.MetadataOnly
	}
	if random.IntN(4) == 0 {
		r.Resource = beta(r.Resource)
	}
	if random.IntN(3) == 0 {
		r.Verb, r.Name, r.Query = wire.VerbList, "", url.Values{"limit": {"500"}}
		if random.IntN(2) == 0 {
			r.Namespace = ""
		}
		if random.IntN(2) == 0 {
			r.Query.Set("labelSelector", "v="+strconv.Itoa(random.IntN(2)))
		}
	}
	return r
}

// doRead reads, and checks.
func (run *overlayRun) doRead(r *wire.Request) {
	run.mu.Lock()
	floors := maps.Clone(run.floors)
	run.mu.Unlock()
	response, err := run.client.Do(run.t.Context(), r)
	got := make(map[kube.Key]string)
	selector := labels.Everything()
	var keys []kube.Key
	switch {
	case r.Verb == wire.VerbList:
		if err != nil {
			run.t.Errorf("seed %d: list: %v", run.seed, err)
			return
		}
		got = run.items(response)
		selector, _ = labels.Parse(r.Query.Get("labelSelector"))
		for k := range floors {
			if r.Namespace == "" || r.Namespace == k.Namespace {
				keys = append(keys, k)
			}
		}
		for k := range got {
			if r.Namespace != "" && r.Namespace != k.Namespace {
				run.t.Errorf("seed %d: a list in %s has %s", run.seed, r.Namespace, k)
			}
		}
	default:
		keys = []kube.Key{{Namespace: r.Namespace, Name: r.Name}}
		if err != nil && !kube.IsNotFound(err) {
			run.t.Errorf("seed %d: get: %v", run.seed, err)
			return
		}
		if err == nil {
			var o state
			if err := kube.Unmarshal(response.Body, &o); err != nil {
				run.t.Error(err)
			}
			got[keys[0]] = string(o.Metadata.UID) + "@" + o.Metadata.Version
			if r.Representation == wire.Full && r.Resource.GroupVersion().String() != versionIn(response.Body) {
				run.t.Errorf("seed %d: asked for %s, got %s", run.seed, r.Resource.GroupVersion(), response.Body)
			}
		}
	}
	slices.SortFunc(keys, func(a, b kube.Key) int { return cmp.Compare(a.String(), b.String()) })
	for _, k := range keys {
		run.check(r, k, got[k], floors[k], selector)
	}
}

func versionIn(object []byte) string {
	var o struct {
		APIVersion string `json:"apiVersion"`
	}
	_ = kube.Unmarshal(object, &o)
	return o.APIVersion
}

// check fails the test unless a read showed the object as it was at floor, or later.
func (run *overlayRun) check(r *wire.Request, k kube.Key, got string, floor int, selector labels.Selector) {
	run.server.mu.Lock()
	defer run.server.mu.Unlock()
	history := append([]moment{{}}, run.server.history[k]...)
	for i, m := range history {
		if i+1 < len(history) && history[i+1].version <= floor {
			continue // it was over by then
		}
		shown := ""
		if m.state != nil && selector.Matches(labels.Set(m.state.Metadata.Labels)) {
			shown = string(m.state.Metadata.UID) + "@" + m.state.Metadata.Version
		}
		if shown == got {
			return
		}
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if !run.hasReported {
		run.hasReported = true
		run.t.Errorf("seed %d: %s %s %s %q shows %s as %q, but a write was answered at %d:\n%s",
			run.seed, r.Verb, r.Resource.Version, r.Representation, r.Query.Get("labelSelector"), k, got, floor, historyOf(history))
	}
}

func historyOf(history []moment) string {
	text := ""
	for _, m := range history {
		if m.state == nil {
			text += fmt.Sprintf("%d: gone\n", m.version)
		} else {
			text += fmt.Sprintf("%d: %+v\n", m.version, m.state.Metadata)
		}
	}
	return text
}
