package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/kube"
)

// mapper holds the changes of watched objects until the goroutine of the engine that maps them
// has found the objects that they concern. The streams, and with them all other controllers,
// do not wait for that. The objects are handled one after the other, in the order of their
// changes. Changes of one object are merged until it is handled.
//
// The state that an object has now is in the store. So the mapper keeps only the states that
// changes have replaced, and nothing but the key of an object that was added.
type mapper struct {
	mu   sync.Mutex
	jobs map[mapKey]*mapJob
	// peak is the greatest length of jobs since the map was made.
	peak int
	// ready holds the keys of the jobs that wait for the goroutine, the next one first. Each zero
	// key stands for one of barriers, in their order.
	ready    []mapKey
	barriers []chan struct{}
	// wake has an element whenever ready has become longer.
	wake chan struct{}
}

// mapKey names a watched object.
type mapKey struct {
	subscription *subscription
	object       kube.Key
}

// mapTask is the work that one watched object makes for the mapper.
type mapTask struct {
	changes changes
	// former holds the states that changes have replaced, the oldest first.
	former []cache.Object
	// hasOverflowed is true if a state did not fit into former. Then the changes may concern
	// any object.
	hasOverflowed bool
}

// mapJob is a watched object whose changes have not been handled. It is either in
// mapper.ready, or running, or waits for retry.
type mapJob struct {
	mapTask
	isRunning bool
	// isChanged is true if a change came while the job was running.
	isChanged bool
	// failures counts the failures in a row.
	failures int
	// retry puts the job into mapper.ready when its back-off is over.
	retry *time.Timer
}

const (
	// maxFormerStates is how many former states of one object are kept.
	maxFormerStates = 16
	// fewJobs is a number of jobs whose memory may be kept for the life of a program.
	fewJobs = 1024
)

func newMapper() *mapper {
	return &mapper{jobs: make(map[mapKey]*mapJob), wake: make(chan struct{}, 1)}
}

// add adds a change of an object. before is the state that the change has replaced, or nil.
func (m *mapper) add(k mapKey, c changes, before *cache.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[k]
	if j == nil {
		j = &mapJob{}
		m.jobs[k] = j
		m.peak = max(m.peak, len(m.jobs))
		m.pushLocked(k)
	} else {
		m.changedLocked(k, j)
	}
	j.changes.merge(c)
	if before != nil {
		j.keep(*before)
	}
}

// addReplaced adds a state that was replaced by a change that does not count. The state counts only
// if an earlier change of the object has not been handled.
func (m *mapper) addReplaced(k mapKey, before cache.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j := m.jobs[k]; j != nil {
		m.changedLocked(k, j)
		j.keep(before)
	}
}

// changedLocked records that the object of a job has changed, which ends its back-off.
func (m *mapper) changedLocked(k mapKey, j *mapJob) {
	if j.isRunning {
		j.isChanged = true
	} else if j.retry != nil && j.retry.Stop() {
		m.pushLocked(k)
	}
}

// keep adds states to former.
func (t *mapTask) keep(states ...cache.Object) {
	fitting := min(len(states), maxFormerStates-len(t.former))
	t.former = append(t.former, states[:fitting]...)
	t.hasOverflowed = t.hasOverflowed || fitting < len(states)
}

func (m *mapper) pushLocked(k mapKey) {
	m.ready = append(m.ready, k)
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// barrier returns a channel that is closed once each job that is ready now has been tried.
func (m *mapper) barrier() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	reached := make(chan struct{})
	m.barriers = append(m.barriers, reached)
	m.pushLocked(mapKey{})
	return reached
}

// begin waits for a job and returns its task, which ends with [mapper.end]. It returns false
// once ctx has ended. It must not be called concurrently.
func (m *mapper) begin(ctx context.Context) (k mapKey, t mapTask, ok bool) {
	for ctx.Err() == nil {
		if k, t, ok = m.next(); ok {
			return k, t, true
		}
		select {
		case <-m.wake:
		case <-ctx.Done():
		}
	}
	return mapKey{}, mapTask{}, false
}

// next starts the first job of ready. It returns false if there is none.
func (m *mapper) next() (k mapKey, t mapTask, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.ready) > 0 {
		k, m.ready = m.ready[0], m.ready[1:]
		if k == (mapKey{}) {
			close(m.barriers[0])
			m.barriers = m.barriers[1:]
			continue
		}
		j := m.jobs[k]
		t, j.mapTask = j.mapTask, mapTask{}
		j.isRunning, j.retry = true, nil
		return k, t, true
	}
	return mapKey{}, mapTask{}, false
}

// end ends a task. If it failed, rest is what has to be handled again.
func (m *mapper) end(k mapKey, rest mapTask, failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[k]
	j.isRunning = false
	isChanged := j.isChanged
	j.isChanged = false
	if failed {
		rest.changes.merge(j.changes)
		rest.hasOverflowed = rest.hasOverflowed || j.hasOverflowed
		rest.keep(j.former...)
		j.mapTask = rest
		j.failures++
	} else {
		j.failures = 0
	}
	switch {
	case isChanged:
		m.pushLocked(k)
	case failed:
		j.retry = time.AfterFunc(DefaultBackoff(j.failures), func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.pushLocked(k)
		})
	default:
		delete(m.jobs, k)
		if len(m.jobs) == 0 && m.peak > fewJobs { // a map does not shrink
			m.jobs, m.peak = make(map[mapKey]*mapJob), 0
		}
	}
}

// stop stops all retries.
func (m *mapper) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		if j.retry != nil {
			j.retry.Stop()
		}
	}
}

// mapChanges maps changes until ctx ends. It begins once all streams are synced, so that a map function
// finds what it reads. A map function that calls runtime.Goexit ends this goroutine; then another
// goroutine takes its place.
func (e *engine) mapChanges(ctx context.Context, running *sync.WaitGroup) {
	var k mapKey
	var task mapTask
	isRunning := false
	defer func() {
		if isRunning {
			e.reportMapping(k.subscription, cache.Record{Namespace: k.object.Namespace, Name: k.object.Name}, errExited)
			e.mapper.end(k, task, true)
			running.Go(func() { e.mapChanges(ctx, running) })
			return
		}
		e.mapper.stop()
	}()
	if !e.waitStreams(ctx) {
		return
	}
	for {
		if k, task, isRunning = e.mapper.begin(ctx); !isRunning {
			return
		}
		rest, failed := e.mapTask(ctx, k, task)
		e.mapper.end(k, rest, failed)
	}
}

// mapTask triggers the objects that the changes of one watched object concern. It returns what
// has to be tried again if it failed.
func (e *engine) mapTask(ctx context.Context, k mapKey, task mapTask) (rest mapTask, failed bool) {
	var keys []relatedKey
	var states []cache.Object
	if now, ok := k.subscription.open.Store().Get(k.object); ok {
		states = append(states, now)
	}
	isNow := len(states)
	rest.changes = task.changes
	for i, state := range append(states, task.former...) {
		found, err := k.subscription.relatedKeys(ctx, state.Record, state.Bytes, e.mapping())
		for _, t := range found {
			if !slices.Contains(keys, t) {
				keys = append(keys, t)
			}
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return task, true // the end of the program, which is no fault of the map function
		}
		e.reportMapping(k.subscription, state.Record, err)
		if isLasting(err) {
			continue
		}
		failed = true
		if i >= isNow {
			rest.former = append(rest.former, state)
		}
	}
	e.triggerRelated(k.subscription, k.object, task.changes, keys)
	if failed {
		rest.hasOverflowed = task.hasOverflowed
	} else if task.hasOverflowed {
		e.emit(Trigger{All: true, Cause: task.changes.cause.String()})
	}
	return rest, failed
}
