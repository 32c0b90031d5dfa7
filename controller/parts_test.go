package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/adoption"
	"github.com/yare-go/yare/controller/internal/echo"
	"github.com/yare-go/yare/controller/internal/mapping"
	"github.com/yare-go/yare/controller/internal/noop"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/controller/internal/relation"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Each test of this file makes one part of a controller alone.

var discard = slog.New(slog.DiscardHandler)

func key(name string) kube.Key { return kube.Key{Namespace: "default", Name: name} }

func configMap(name string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: finalizers}}
}

func kindOf(t *testing.T, obj kube.Object) kube.Type {
	t.Helper()
	kind, err := kube.TypeOfObject(obj)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

func objectsOf[T any, P kube.ObjectOf[T]](t *testing.T) objectAccess {
	t.Helper()
	return typedAccess[T]{kube.APIOf[T, P](nil, kindOf(t, P(new(T))), "")}
}

// fakeObjects are the objects of the reconciled kind. Only the namespace default is watched.
type fakeObjects map[kube.Key]cache.Object

func (f fakeObjects) keys() iter.Seq[kube.Key] { return maps.Keys(f) }

func (f fakeObjects) isSynced(kube.Key) bool { return true }

func (f fakeObjects) confirmTerm(context.Context, kube.Key) bool { return true }

func (f fakeObjects) isKindUnserved(string) bool { return false }

func (f fakeObjects) covers(k kube.Key) bool { return k.Namespace == "default" }

func (f fakeObjects) stored(k kube.Key) (cache.Object, bool) {
	o, ok := f[k]
	return o, ok
}

// triggers records triggers.
type triggers []queue.Trigger

func (t *triggers) add(trigger queue.Trigger) { *t = append(*t, trigger) }

func (t *triggers) names() (names []string) {
	for _, trigger := range *t {
		names = append(names, trigger.Key.Name)
	}
	slices.Sort(names)
	*t = nil
	return names
}

// openSubscriptions returns the synced subscriptions of ConfigMaps and of Secrets that name them.
func openSubscriptions(t *testing.T, c *kube.Client) (*subscriptions, *cache.Cache) {
	t.Helper()
	reconciled := &watchedKind{kind: kindOf(t, new(corev1.ConfigMap)), relation: relation.Self{}}
	secrets := &watchedKind{kind: kindOf(t, new(corev1.Secret)), relation: relation.Owner{}}
	caches := cache.New(c)
	s, err := newSubscriptions(reconciled, []*watchedKind{secrets}, &Runtime{Client: c})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.open(t.Context(), caches, func(sub *subscription, change cache.Change) {
		if change.Type == cache.Synced {
			sub.recordSynced()
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.close()
		caches.Close()
	})
	if !s.waitSynced(t.Context()) {
		t.Fatal("not synced")
	}
	return s, caches
}

func TestSubscriptionsShowTheObjectsOfTheirKinds(t *testing.T) {
	t.Parallel()
	c := fakeserver.New().Client()
	created, err := kube.Everywhere[corev1.ConfigMap](c).Create(t.Context(), configMap("eden"))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := openSubscriptions(t, c)
	if got := slices.Collect(s.keys()); !slices.Equal(got, []kube.Key{key("eden")}) {
		t.Errorf("keys: %v", got)
	}
	if o, ok := s.stored(key("eden")); !ok || o.UID != created.UID {
		t.Errorf("stored: %v, %t", o, ok)
	}
	if s.covers(kube.Key{Name: "eden"}) || !s.covers(key("rose")) {
		t.Error("the streams cover a key without a namespace, or do not cover a key with one")
	}
	want := echo.Version{UID: created.UID, ResourceVersion: created.ResourceVersion}
	if got := s.NewestShown(echo.NewTarget(s.ofReconciledKind[0].stream.Resource, key("eden"))); got != want {
		t.Errorf("the newest version is %v, not %v", got, want)
	}
	secret := &wire.Request{Verb: wire.VerbGet, Resource: s.all[1].stream.Resource, Namespace: "default", Name: "s", Representation: wire.Full}
	if s.coversRead(secret) {
		t.Error("the metadata of Secrets covers a read of a whole Secret")
	}
}

func TestEnqueuerDropsWhatTheStreamsDoNotCover(t *testing.T) {
	t.Parallel()
	var got triggers
	e := newEnqueuer(fakeObjects{key("a"): {}, key("b"): {}}, wire.Resource{}, 0, got.add, nil)
	e.emit(Trigger{Key: key("c")})
	e.emit(Trigger{Key: kube.Key{Namespace: "elsewhere", Name: "d"}})
	if names := got.names(); !slices.Equal(names, []string{"c"}) {
		t.Errorf("triggered: %v", names)
	}
	e.emit(Trigger{All: true})
	if names := got.names(); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("triggered: %v", names)
	}
}

func newDispatcher(objects shownObjects, add func(queue.Trigger), makeNextReadLive func(wire.Ref)) *dispatcher {
	return &dispatcher{
		log: discard, shownObjects: objects, echoes: echo.NewTracker(), unfinished: newUnfinishedObjects(), cancels: newCancelRegistry(),
		reconciledKind:     relation.ReconciledKind{Resource: wire.Resource{GroupVersionKind: schema.GroupVersionKind{Kind: "Garden"}}},
		recordDoubtSettled: newSignal().send,
		mapQueue:           mapping.NewQueue[*subscription](DefaultBackoff), enqueue: add, makeNextReadLive: makeNextReadLive,
		dropGone: func(kube.Key) bool { return true },
	}
}

func TestDispatcherTriggersTheOwnersOfAChild(t *testing.T) {
	t.Parallel()
	var got triggers
	var doubts []wire.Ref
	d := newDispatcher(fakeObjects{key("eden"): {Record: cache.Record{UID: "1"}}}, got.add, func(r wire.Ref) { doubts = append(doubts, r) })
	sub := &subscription{
		watched: &watchedKind{relation: relation.Owner{}}, synced: make(chan struct{}), settled: make(chan struct{}),
		kindSynced: &milestone{reached: make(chan struct{})},
	}
	child := func(version, owner, uid string) cache.Record {
		return cache.Record{
			Namespace: "default", Name: "rose", UID: "9", ResourceVersion: version,
			Owners: []kube.Owner{{Kind: "Garden", Name: owner, UID: types.UID(uid), Controller: true}},
		}
	}
	d.handleChange(sub, cache.Change{Type: cache.Modified, Before: child("4", "hortus", "2"), After: child("5", "eden", "1")})
	if names := got.names(); !slices.Equal(names, []string{"eden", "hortus"}) {
		t.Errorf("triggered: %v, not the owner and the former owner", names)
	}
	d.handleChange(sub, cache.Change{Type: cache.Modified, Before: child("5", "eden", "0"), After: child("6", "eden", "0")})
	if names := got.names(); names != nil {
		t.Errorf("triggered: %v, although the owner has another uid", names)
	}
	d.handleChange(sub, cache.Change{Type: cache.Deleted, Before: child("6", "eden", "1")})
	if names := got.names(); !slices.Equal(names, []string{"eden"}) || len(doubts) != 1 || doubts[0].UID != "1" {
		t.Errorf("triggered: %v, in doubt: %v", names, doubts)
	}
	d.handleChange(sub, cache.Change{Type: cache.Synced})
	<-sub.synced
}

func TestDispatcherLeavesSlowRelationsToTheMapQueue(t *testing.T) {
	t.Parallel()
	var got triggers
	d := newDispatcher(fakeObjects{}, got.add, nil)
	sub := &subscription{watched: &watchedKind{relation: relation.Map{}}}
	d.handleChange(sub, cache.Change{Type: cache.Added, After: cache.Record{Namespace: "default", Name: "rose", UID: "9", ResourceVersion: "4"}})
	k, task, ok := d.mapQueue.Begin(t.Context())
	if !ok || k.Object != key("rose") || task.Changes.Last.ResourceVersion != "4" || got != nil {
		t.Errorf("the map queue has %v, %v; triggered: %v", k, task, got)
	}
}

func TestMapperTriesAFailedTaskOnceMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := openSubscriptions(t, fakeserver.New().Client())
		sub := s.all[1]
		failed := errors.New("not now")
		var failures int
		sub.watched.relation = relation.Map{Function: func(context.Context, *kube.Client, []byte) ([]kube.Key, error) {
			failures++
			return nil, failed
		}}
		var batches []mapping.Batch
		m := &mapper{
			log: discard, queue: mapping.NewQueue[*subscription](func(int) time.Duration { return time.Second }), waitSynced: s.waitSynced,
			trigger: func(_ *subscription, _ kube.Key, b mapping.Batch, _ []relation.Key) { batches = append(batches, b) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { m.run(ctx, &running) })
		b := mapping.Batch{Cause: queue.Cause{Change: "added"}}
		m.queue.Add(mapping.Key[*subscription]{Subscription: sub, Object: key("gone")}, b, new(cache.Object))
		time.Sleep(1500 * time.Millisecond)
		cancel()
		running.Wait()
		if len(batches) != 2 {
			t.Errorf("%d triggers, %d failures", len(batches), failures)
		}
	})
}

// The test walks the fields next of the handlers, and prints their types.
func TestPipelineHasOneOrder(t *testing.T) {
	t.Parallel()
	s, caches := openSubscriptions(t, fakeserver.New().Client())
	view := s.view(caches)
	p := &pipeline{view: view, noopChecker: noop.NewChecker(view, nil), adoption: adoption.NewGuard(view, nil, nil, nil), echoes: echo.NewTracker()}
	program := wire.HandlerFunc(nil)
	var got []string
	for v := reflect.ValueOf(p.handlers(t.Context(), program, key("a"), wire.Ref{}, newRequestRecorder(t.Context()))); ; {
		if v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		got = append(got, v.Type().String())
		if v = reflect.Indirect(v); v.Kind() != reflect.Struct || !v.FieldByName("next").IsValid() {
			break
		}
		v = v.FieldByName("next")
	}
	want := []string{"*controller.requestRecorder", "*adoption.ownerCheck", "*noop.handler", "*adoption.handler", "*echo.handler", "*cache.handler", "wire.HandlerFunc"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the chain of handlers (-want +got):\n%s", diff)
	}
}

func TestFinalizersAreAddedAndRemoved(t *testing.T) {
	t.Parallel()
	c := fakeserver.New().Client()
	created, err := kube.Everywhere[corev1.ConfigMap](c).Create(t.Context(), configMap("eden", "example.com/other", "example.com/old"))
	if err != nil {
		t.Fatal(err)
	}
	f := &finalizers{name: "example.com/new", retired: []string{"example.com/old"}, access: objectsOf[corev1.ConfigMap](t), liveClient: c}
	obj, exists, err := f.removeRetired(t.Context(), c, created)
	if err != nil || !exists || !slices.Equal(obj.GetFinalizers(), []string{"example.com/other"}) {
		t.Fatalf("without the retired finalizer: %v, %t, %v", obj, exists, err)
	}
	// created is not current: the patch is refused, and the object is read.
	obj, exists, err = f.update(t.Context(), c, created)
	if err != nil || !exists || !slices.Equal(obj.GetFinalizers(), []string{"example.com/other", "example.com/new"}) {
		t.Fatalf("with the finalizer: %v, %t, %v", obj, exists, err)
	}
	if err := f.removeOwn(t.Context(), c, obj); err != nil {
		t.Fatal(err)
	}
	if live, err := kube.Get[corev1.ConfigMap](t.Context(), c, "default", "eden"); err != nil || !slices.Equal(live.Finalizers, []string{"example.com/other"}) {
		t.Errorf("in the end: %v, %v", live, err)
	}
}

func TestDeselectedObjectsHaveAFinalizerAndNoStream(t *testing.T) {
	t.Parallel()
	c := fakeserver.New().Client()
	for _, obj := range []*corev1.ConfigMap{configMap("a", "example.com/f"), configMap("b"), configMap("c", "example.com/f")} {
		if _, err := kube.Everywhere[corev1.ConfigMap](c).Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	d := &deselectedObjects{
		shownObjects: fakeObjects{key("c"): {}}, access: objectsOf[corev1.ConfigMap](t), finalizers: &finalizers{name: "example.com/f"},
		reconciled: &watchedKind{kind: kindOf(t, new(corev1.ConfigMap)), selectors: []kube.Selector{kube.Label("shard", "1")}}, liveClient: c, narrowedClient: c,
	}
	var emitted []string
	if err := d.emitAll(t.Context(), func(t Trigger) { emitted = append(emitted, t.Key.Name) }); err != nil || !slices.Equal(emitted, []string{"a"}) {
		t.Errorf("emitted: %v, %v", emitted, err)
	}
	again := configMap("again", "example.com/f")
	again.Labels = map[string]string{"shard": "1"}
	if _, err := kube.Everywhere[corev1.ConfigMap](c).Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]selection{"a": deselected, "b": noObject, "none": noObject, "again": notShownYet} {
		if _, got, err := d.read(t.Context(), key(name)); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// fakeQueue hands out one key, and then ends.
type fakeQueue struct {
	work     []queue.Work
	outcomes []queue.Next
}

func (q *fakeQueue) Get(context.Context) (queue.Work, bool) {
	if len(q.work) == 0 {
		return queue.Work{}, false
	}
	work := q.work[0]
	q.work = q.work[1:]
	return work, true
}

func (q *fakeQueue) Done(_ queue.Key, o queue.Next) { q.outcomes = append(q.outcomes, o) }

func TestReconcilerReadsCallsAndReports(t *testing.T) {
	t.Parallel()
	q := &fakeQueue{work: []queue.Work{{Key: key("good")}, {Key: key("bad")}, {Key: key("gone")}, {Key: key("again")}}}
	var reported, gone []string
	c := &reconciler{
		name: "test", log: discard, programLog: discard, queue: q, shownObjects: fakeObjects{}, unfinished: newUnfinishedObjects(), longReconciles: newLongReconciles(discard, 0, 1),
		waits: &finalizerWaits{log: discard, unfinished: newUnfinishedObjects()}, finalizers: &finalizers{}, requeueWaits: newRequeueWaits(discard),
		functions: functions{
			reconcile: func(_ context.Context, obj kube.Object, _ *kube.Client) (Action, error) {
				if obj.GetName() == "bad" {
					return Done(), Terminal(errors.New("bad"))
				}
				return RequeueAfter(time.Minute), nil
			},
		},
		onGone: []func(kube.Key){func(k kube.Key) { gone = append(gone, k.Name) }},
		read: func(_ context.Context, k kube.Key) (kube.Object, selection, error) {
			switch k.Name {
			case "gone":
				return nil, noObject, nil
			case "again": // once the functions for objects that are gone were called for it
				return nil, notShownYet, nil
			}
			return configMap(k.Name), selected, nil
		},
		clientFor: func(context.Context, kube.Key, wire.Ref, *requestRecorder) *kube.Client { return nil },
		echoes:    echo.NewTracker(),
		report: func(_ *reconcileContext, _ kube.Object, r Result, _ *unfinishedObject) {
			reported = append(reported, fmt.Sprint(r.Object.Name, " ", r.Err))
		},
	}
	c.run(t.Context(), t.Context(), new(sync.WaitGroup))
	if diff := cmp.Diff([]queue.Next{{RequeueAfter: time.Minute, SkipsOwnStatus: true}, {}, {}, {}}, q.outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if !slices.Equal(reported, []string{"good <nil>", "bad bad"}) || !slices.Equal(gone, []string{"gone"}) {
		t.Errorf("reported: %q, gone: %q", reported, gone)
	}
}

func TestDoubtRepairTriggersAllObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got triggers
		forgotten, released := 0, 0
		var wait atomic.Int64
		r := &doubtRepair{
			doubtSettled: newSignal(), forget: []func(){func() { forgotten++ }}, isUnfinished: func(k kube.Key) bool { return k.Name == "b" },
			doubtWait: func() time.Duration { return time.Duration(wait.Load()) }, doubtedStreams: func() []string { return nil },
			releaseLow: func() { released++ },
			enqueueAll: newEnqueuer(fakeObjects{key("a"): {}, key("b"): {}}, wire.Resource{}, 0, got.add, nil).enqueueAll,
			repaired:   newSignal(),
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.run(ctx, 0)
		wait.Store(int64(time.Minute))
		r.doubtSettled.send()
		synctest.Wait()
		if len(got) != 0 || forgotten != 1 || released != 0 || len(r.repaired) != 0 {
			t.Errorf("while a store is in doubt: %d triggers, forgotten %d times, released %d times", len(got), forgotten, released)
		}
		wait.Store(0)
		r.doubtSettled.send()
		synctest.Wait()
		for _, trigger := range got {
			if isHigh := trigger.Priority == queue.High; isHigh != (trigger.Key.Name == "b") {
				t.Errorf("%v: %v", trigger.Key, trigger.Priority)
			}
		}
		if len(got) != 2 || forgotten != 2 || released != 1 || len(r.repaired) != 1 {
			t.Errorf("%d triggers, forgotten %d times, released %d times", len(got), forgotten, released)
		}
	})
}

// Regression: a store was in doubt when the controller started, and could not be listed. Its workers waited for the end of
// the wait. If the end came before the first check, nobody woke them.
func TestDoubtRepairEndsAWaitFromBeforeTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got triggers
		var log bytes.Buffer
		var released atomic.Int64
		r := &doubtRepair{
			doubtSettled: newSignal(), log: slog.New(slog.NewTextHandler(&log, nil)),
			isUnfinished: func(kube.Key) bool { return false }, releaseLow: func() { released.Add(1) },
			doubtWait: func() time.Duration { return 0 }, doubtedStreams: func() []string { return []string{"plants"} },
			enqueueAll: newEnqueuer(fakeObjects{key("a"): {}}, wire.Resource{}, 0, got.add, nil).enqueueAll,
			repaired:   newSignal(),
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.run(ctx, 20*time.Second)
		time.Sleep(19 * time.Second)
		synctest.Wait()
		if released.Load() != 0 {
			t.Error("Low is released before the end of the wait")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if released.Load() != 1 || len(got) != 1 {
			t.Errorf("after the wait, Low is released %d times, and there are %d triggers, want one each", released.Load(), len(got))
		}
		if lines := log.String(); strings.Count(lines, "level=WARN") != 1 || !strings.Contains(lines, "streams=[plants]") {
			t.Errorf("the log is %q", lines)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if released.Load() != 1 {
			t.Errorf("Low is released %d times after one wait", released.Load())
		}
	})
}

func TestCancelsEndTheReconcileOfTheSameObject(t *testing.T) {
	t.Parallel()
	c := newCancelRegistry()
	ctx, remove := c.add(t.Context(), key("a"), "1")
	c.cancel(key("a"), "2")
	if ctx.Err() != nil {
		t.Error("the deletion of an earlier object of that name ended the reconcile")
	}
	c.cancel(key("a"), "1")
	if !errors.Is(context.Cause(ctx), errDeletionBegun) {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
	remove()
	c.cancel(key("a"), "1")
}

func TestLongCallsAreReportedWithGrowingIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLongReconciles(discard, 0, 1)
		l.begin(key("a"), wire.Ref{Namespace: "default", Name: "a"})
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{longReconcile - 1, 0}, {1, 1}, {longReconcile - 1, 0}, {1, 1}} {
			time.Sleep(step.wait)
			if got := len(l.takeLong(time.Now())); got != step.want {
				t.Errorf("after %s more: %d, not %d", step.wait, got, step.want)
			}
		}
		l.end(key("a"))
		time.Sleep(time.Hour)
		if len(l.takeLong(time.Now())) != 0 {
			t.Error("a call that has returned is reported")
		}
	})
}

func TestFinalizerWaitsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		w := &finalizerWaits{finalizers: &finalizers{}, log: slog.New(slog.NewTextHandler(&text, nil)), unfinished: newUnfinishedObjects()}
		obj := configMap("a", "example.com/other")
		if isWaiting, _ := w.reportWait(key("a"), obj); isWaiting {
			t.Error("an object that is not being deleted waits")
		}
		obj.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		if isWaiting, after := w.reportWait(key("a"), obj); !isWaiting || after != finalizerWaitLimit {
			t.Errorf("waits: %t, check after %s", isWaiting, after)
		}
		time.Sleep(finalizerWaitLimit)
		for range 2 {
			if isWaiting, after := w.reportWait(key("a"), obj); !isWaiting || after != 0 {
				t.Errorf("waits: %t, check after %s", isWaiting, after)
			}
		}
		if n := strings.Count(text.String(), "example.com/other"); n != 1 {
			t.Errorf("%d log lines: %s", n, text.String())
		}
	})
}
