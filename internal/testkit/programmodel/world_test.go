package programmodel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// world is one run: the server, and what the model knows of the program.
type world struct {
	server *fakeserver.Server
	front  *front

	mu      sync.Mutex
	random  *rand.Rand
	started time.Time
	trace   []string
	// problems holds what the program did wrong.
	problems []string
	// restored is true from the restoration of a backup on. Until the program has noticed that
	// and listed everything anew, its versions are of both pasts, and nothing is compared.
	restored, noticed bool
	// calm is true once no more faults are injected.
	calm bool
	// requests and reconciles count, so that a busy loop ends.
	requests, reconciles int
	// running holds the reconciles under way.
	running map[target]bool
	// begun holds the times at which an object's reconciles began.
	begun map[target][]time.Time
	// last holds the desired state that the last reconcile of an object saw.
	last map[target]int
	// shown holds, for each controller, the newest version of each object that the controller
	// was shown.
	shown map[string]map[objectName]floor
	// written holds the newest version of each object that the program has written.
	written map[objectName]floor
	// leader is the number of the program that leads, or noLeader.
	leader int
	// shared holds the owner of each shared child by the uid of the child, when a program wrote it last.
	shared map[string]string
	// holders holds the parents whose last reconcile has applied the child that they share.
	holders map[target]bool
}

// noLeader is the number of no program.
const noLeader = -1

// target is an object of a controller.
type target struct {
	controller string
	kube.Key
}

func (t target) String() string { return t.controller + " " + t.Key.String() }

// objectName names an object.
type objectName struct{ plural, namespace, name string }

// floor is the oldest version that a read may return.
type floor struct {
	version int
	// uid is the uid of the object, if the object existed at that version.
	uid string
}

// Limits that only a busy loop reaches.
const (
	maxRequests   = 4000
	maxReconciles = 2000
)

type strangerKey struct{}

// stranger marks the requests of somebody outside of the program, which are served at once.
func stranger() context.Context { return context.WithValue(context.Background(), strangerKey{}, true) }

func newWorld(random *rand.Rand) *world {
	w := &world{
		server: fakeserver.New(), random: random, started: time.Now(),
		running: make(map[target]bool), begun: make(map[target][]time.Time), last: make(map[target]int),
		shown: make(map[string]map[objectName]floor), written: make(map[objectName]floor),
		leader: noLeader, shared: make(map[string]string), holders: make(map[target]bool),
	}
	w.front = &front{server: w.server}
	w.server.Before(w.before)
	w.server.After(w.after)
	return w
}

// before delays requests of the program.
func (w *world) before(ctx context.Context, r *wire.Request) error {
	if ctx.Value(strangerKey{}) != nil {
		return nil
	}
	w.mu.Lock()
	w.requests++
	busy := w.requests > maxRequests
	if w.requests == maxRequests {
		w.problemLocked("the program sent %d requests", maxRequests)
	}
	var wait time.Duration
	if !w.calm && w.random.IntN(4) == 0 {
		wait = time.Duration(w.random.IntN(300)) * time.Millisecond
	}
	size := 0
	if !w.calm && r.Subresource == "status" && w.random.IntN(8) == 0 {
		size = 1 + w.random.IntN(3)
	}
	w.mu.Unlock()
	if busy {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(wait)
	if size > 0 { // somebody edits the object between the read of a reconcile and its status
		body := fmt.Sprintf(`{"metadata":{"labels":{"size":%q}},"spec":{"size":%d}}`, strings.Repeat("x", size), size)
		_, err := w.server.Do(stranger(), &wire.Request{
			Verb: wire.VerbPatch, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name, Body: []byte(body), ContentType: wire.ContentMergePatch,
		})
		w.log("a stranger sends patch %s %s/%s %s: %v", r.Resource.Plural, r.Namespace, r.Name, body, err)
	}
	return w.front.refuse(r)
}

// after delays answers, so that a watch shows a write before the answer arrives, and hides whether
// some writes were carried out.
func (w *world) after(ctx context.Context, r *wire.Request) error {
	if ctx.Value(strangerKey{}) != nil || !r.Verb.IsWrite() {
		return nil
	}
	w.checkShared(r)
	w.mu.Lock()
	w.logLocked("the program sends %s %s/%s %s/%s as %s", r.Verb, r.Resource.Plural, r.Subresource, r.Namespace, r.Name, r.Query.Get("fieldManager"))
	var wait time.Duration
	lost := false
	if !w.calm {
		if w.random.IntN(3) == 0 {
			wait = time.Duration(w.random.IntN(2000)) * time.Millisecond
		}
		lost = w.random.IntN(30) == 0
	}
	w.mu.Unlock()
	time.Sleep(wait)
	if lost {
		w.log("the answer to %s %s/%s is lost", r.Verb, r.Namespace, r.Name)
		return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: context.DeadlineExceeded}
	}
	return nil
}

// checkShared checks, after a write of a program, that a child which two parents share was not taken from a parent that
// exists.
func (w *world) checkShared(r *wire.Request) {
	if r.Resource.Plural != childResource.Plural || !strings.HasPrefix(r.Name, sharedPrefix) {
		return
	}
	o := w.server.Object(r.Resource.Plural, r.Namespace, r.Name)
	if o == nil {
		return
	}
	metadata := o["metadata"].(map[string]any)
	uid, owner := fmt.Sprint(metadata["uid"]), fmt.Sprint(metadata["labels"].(map[string]any)[ownerLabel])
	w.mu.Lock()
	former := w.shared[uid]
	w.shared[uid] = owner
	w.mu.Unlock()
	if former == "" || former == owner {
		return
	}
	plural, _, _ := strings.Cut(strings.TrimPrefix(r.Name, sharedPrefix), "-")
	for _, each := range w.server.Objects(plural + "s") {
		if each["metadata"].(map[string]any)["uid"] == former {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.problemLocked("%s %s of the parent with the uid %s, which exists, was taken over by the one with the uid %s", r.Namespace, r.Name, former, owner)
			return
		}
	}
}

// failed reports whether the program did anything wrong.
func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.problems) > 0
}

func (w *world) intN(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// problemLocked records what the program did wrong. The caller holds the lock.
func (w *world) problemLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.problems = append(w.problems, text)
	w.logLocked("PROBLEM %s", text)
}

func (w *world) log(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLocked(format, args...)
}

func (w *world) logLocked(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%10s %s", time.Since(w.started).Round(time.Millisecond), fmt.Sprintf(format, args...)))
}

// begin records the beginning of a reconcile of an object, and returns the function that ends
// the reconcile.
func (w *world) begin(p *plan, t target, desired int) (r *reading, end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.program != w.leader {
		w.problemLocked("%s is reconciled by the program %d, and %d leads", t, p.program, w.leader)
	}
	w.logLocked("reconcile %s, which wants %d", t, desired)
	if w.running[t] {
		w.problemLocked("%s is reconciled by two workers at once", t)
	}
	w.reconciles++
	if w.reconciles == maxReconciles {
		w.problemLocked("the program ran %d reconciles", maxReconciles)
	}
	w.running[t] = true
	w.begun[t] = append(w.begun[t], time.Now())
	w.last[t] = desired
	r = &reading{world: w, target: t, floors: make(map[objectName]floor)}
	for at, f := range w.shown[p.watcher()] {
		r.floors[at] = f
	}
	return r, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.running, t)
		w.logLocked("reconciled %s", t)
	}
}

// show records that a controller was shown a change. A deletion has gone set: the object is not
// in that version any more. With deselects set, the object may have stopped matching the selectors of the stream instead.
func (w *world) show(controller string, at objectName, version, uid string, gone, deselects bool) {
	newest, live := w.server.Version(), w.server.Object(at.plural, at.namespace, at.name)
	// removeChildren removes the objects a moment after the kind. No object of the kind exists from then on.
	isServed := w.front.refuseAbsent(&wire.Request{Resource: wire.Resource{Plural: at.plural}}) == nil
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLocked("%s is shown %v at %s, gone: %t", controller, at, version, gone)
	v, err := strconv.Atoi(version)
	if err != nil || v > newest || w.restored && !w.noticed {
		return
	}
	if gone && !deselects && isServed && live != nil && live["metadata"].(map[string]any)["uid"] == uid {
		w.problemLocked("%s was shown the deletion of %v, which exists", controller, at)
	}
	f := floor{v, uid}
	if gone {
		f = floor{version: v + 1}
	}
	all := w.shown[controller]
	if all == nil {
		all = make(map[objectName]floor)
		w.shown[controller] = all
	}
	if all[at].version < f.version {
		all[at] = f
	}
}

// write records the answer to a write of the program.
func (w *world) write(at objectName, o metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, err := strconv.Atoi(o.GetResourceVersion())
	if err == nil && !(w.restored && !w.noticed) && w.written[at].version < v {
		w.written[at] = floor{v, string(o.GetUID())}
	}
}

// reading checks the reads of one reconcile.
type reading struct {
	world  *world
	target target
	floors map[objectName]floor
}

// floor returns what a read that begins now may return at the least.
func (r *reading) floor(at objectName) floor {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	f := r.floors[at]
	if own := r.world.written[at]; own.version > f.version {
		f = own
	}
	return f
}

// check checks what a read returned: an object, or nil if there was none.
func (r *reading) check(at objectName, f floor, o metav1.Object) {
	live := r.world.server.Object(at.plural, at.namespace, at.name)
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	if f.version == 0 || r.world.restored && !r.world.noticed {
		return
	}
	if o != nil {
		if v, err := strconv.Atoi(o.GetResourceVersion()); err != nil || v < f.version {
			r.world.problemLocked("the reconcile of %s read %v at version %s, and knew of %d", r.target, at, o.GetResourceVersion(), f.version)
		}
		return
	}
	// Whoever has this uid now has existed all the time.
	if live != nil && f.uid != "" && live["metadata"].(map[string]any)["uid"] == f.uid {
		r.world.problemLocked("the reconcile of %s read that %v does not exist, and knew of version %d", r.target, at, f.version)
	}
}

// restore restores a backup.
func (w *world) restore(b fakeserver.Snapshot) {
	w.mu.Lock()
	w.restored = true
	clear(w.shared)
	w.mu.Unlock()
	w.server.Restore(b)
}

// checkStreamError records a problem if a stream misses a version that the server has not lost.
func (w *world) checkStreamError(s wire.Stream, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.restored {
		return
	}
	// A probe may find a loss that is none: a watch that a fault delays for long misses a deletion that the list of the
	// probe shows.
	for _, text := range []string{"has lost resource version", "which does not fit version", "and has been at"} {
		if strings.Contains(err.Error(), text) {
			w.problemLocked("%s: %v", s, err)
		}
	}
}

// notice begins to compare versions again after a restoration.
func (w *world) notice() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.restored {
		clear(w.shown)
		clear(w.written)
		w.noticed = true
	}
}
