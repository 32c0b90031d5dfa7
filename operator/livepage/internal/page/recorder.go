package page

import (
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// maxRunning bounds the objects whose running reconciles have requests that are kept.
const maxRunning = 1000

// Recorder observes the controllers of a program, and keeps a bounded history of what they do. It is the
// [controller.Observer] of a program with the page. It passes what it receives to another observer.
type Recorder struct {
	// next may be nil.
	next    controller.Observer
	history *history
	now     func() time.Time

	mu sync.Mutex
	// running holds the running reconciles, with their requests so far. At most one reconcile of a controller runs for an
	// object.
	running map[runningKey]*reconcile
	// queues holds the queues of the controllers in the order in which they came.
	queues []namedQueue
	// contested are the last contested fields, the newest one last.
	contested []contestedField
}

// maxContested bounds the contested fields that are kept.
const maxContested = 20

// contestedField is a field that was set back again and again.
type contestedField struct {
	At            time.Time
	Object        objectName
	Path, Manager string
}

// runningKey names a running reconcile.
type runningKey struct {
	controller string
	key        kube.Key
}

// namedQueue is the queue of a controller.
type namedQueue struct {
	controller string
	stats      func() controller.QueueStats
}

// NewRecorder returns a Recorder that passes what it receives to next, which may be nil.
func NewRecorder(next controller.Observer) *Recorder {
	return &Recorder{next: next, history: new(history), now: time.Now, running: make(map[runningKey]*reconcile)}
}

// Subscribed records the queue of a controller.
func (r *Recorder) Subscribed(name string, stats func() controller.QueueStats) {
	if r.next != nil {
		r.next.Subscribed(name, stats)
	}
	r.mu.Lock()
	r.queues = append(r.queues, namedQueue{name, stats})
	r.mu.Unlock()
}

// ObserveRequest records a request of a reconcile. It compares the states before and after a write.
func (r *Recorder) ObserveRequest(
	name string, key kube.Key, request *wire.Request, before cache.KnownState, response *wire.Response, err error,
) {
	var read string
	var made *write
	if request.Verb.IsWrite() {
		made = newWrite(request, before, response, err)
	} else {
		read = shortened(string(request.Verb)+" "+request.Ref().String(), maxValue)
		if err == nil && !response.Cached {
			read += " (from the server)"
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := runningKey{name, key}
	running := r.running[k]
	if running == nil {
		if len(r.running) >= maxRunning {
			clear(r.running) // of objects that were gone at the end of their reconciles
		}
		running = new(reconcile)
		r.running[k] = running
	}
	if made != nil && !made.IsSkipped && made.Error == "" {
		running.HasChanged = true
	}
	switch {
	case made == nil && len(running.Reads) < maxReads:
		running.Reads = append(running.Reads, read)
	case made != nil && len(running.Writes) < maxWrites:
		running.Writes = append(running.Writes, made)
	case made != nil:
		running.MoreWrites++
	}
}

// Result records the result of a reconcile.
func (r *Recorder) Result(result controller.Result) {
	if r.next != nil {
		r.next.Result(result)
	}
	o := &result.Object
	k := runningKey{result.Controller, kube.Key{Cluster: o.Cluster, Namespace: o.Namespace, Name: o.Name}}
	r.mu.Lock()
	ended := r.running[k]
	delete(r.running, k)
	r.mu.Unlock()
	if ended == nil {
		ended = new(reconcile)
	}
	ended.Ended, ended.Controller, ended.Object = r.now(), result.Controller, objectName{
		o.Resource.Kind, o.Namespace, o.Name,
	}
	ended.IsCleanup, ended.Causes, ended.Waited, ended.Duration, ended.Next = result.Cleanup, result.Causes, result.Waited,
		result.Duration, result.Next
	ended.Outcome, ended.Attempt, ended.ReadCount = result.Outcome(), result.Attempt, result.Reads
	if result.Err != nil {
		ended.Error = shortened(result.Err.Error(), maxError)
	}
	r.history.addReconcile(ended)
}

// ObserveSetBack records a contested field, for [contested.Observer].
func (r *Recorder) ObserveSetBack(object wire.Ref, f contested.Field, isContested bool) {
	if next, ok := r.next.(contested.Observer); ok {
		next.ObserveSetBack(object, f, isContested)
	}
	if !isContested {
		return
	}
	recorded := contestedField{
		r.now(), objectName{object.Resource.Kind, object.Namespace, object.Name},
		shortened(f.Path, maxPath), shortened(f.Manager, maxValue),
	}
	r.mu.Lock()
	r.contested = append(slices.Clone(r.contested[max(0, len(r.contested)-maxContested+1):]), recorded)
	r.mu.Unlock()
}

// contestedFields returns the last contested fields, the newest one last. The caller must not change them.
func (r *Recorder) contestedFields() []contestedField {
	r.mu.Lock()
	fields := r.contested
	r.mu.Unlock()
	return fields
}

// ObserveChange records a change of an object that a controller watches.
func (r *Recorder) ObserveChange(resource wire.Resource, c cache.Change) {
	record := c.Record()
	recorded := &change{
		At: r.now(), Object: objectName{resource.Kind, record.Namespace, record.Name}, Type: typeOf(c.Type),
		version: record.ResourceVersion,
	}
	if isConfidential(&resource, "") {
		recorded.IsConfidential = true
	} else {
		recorded.states = c
	}
	r.history.addChange(recorded)
}

// allQueues returns the queues of the controllers. The caller must not change them.
func (r *Recorder) allQueues() []namedQueue {
	r.mu.Lock()
	queues := r.queues
	r.mu.Unlock()
	return queues
}
