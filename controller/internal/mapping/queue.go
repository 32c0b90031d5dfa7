// Package mapping holds the changes of watched objects until the objects that they concern are found.
package mapping

import (
	"context"
	"sync"
	"time"

	"github.com/yare-go/yare/controller/internal/echo"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
)

const (
	// maxKept is how many replaced states, and how many earlier versions, of one object are kept.
	maxKept = 16
	// smallPeak is a number of jobs whose memory is kept.
	smallPeak = 1024
)

// Queue holds the changes of watched objects whose related objects are not known yet. One goroutine
// takes the objects one after the other, in the order of their changes. Changes of one object are
// merged until the object is taken. S identifies the subscription of an object.
//
// The state that an object has now is in the store. So the Queue keeps only the replaced states. Of an
// added object it keeps only the key.
//
// An example. A Policy is added at version 5, modified to version 6 and modified to version 7, before
// the goroutine takes the Policy. The Queue then has one [Task] with the replaced states 5 and 6. The
// goroutine finds state 7 in the store, and maps 7, 5 and 6: the change may concern an object that only
// state 6 named.
type Queue[S comparable] struct {
	mu   sync.Mutex
	jobs map[Key[S]]*job
	// peak is the greatest length of jobs since the map was made.
	peak int
	// ready holds the keys of the jobs that wait for the goroutine, the next one first. Each zero
	// key stands for one of barriers, in their order.
	ready    []Key[S]
	barriers []chan struct{}
	// wake has an element whenever ready has become longer.
	wake chan struct{}
	// backoff returns the wait of an attempt: see [queue.RetryWait].
	backoff func(attempt int) time.Duration
}

// Key names a watched object. The zero Key names none.
type Key[S comparable] struct {
	Subscription S
	Object       kube.Key
}

// Task is the work that one watched object makes.
type Task struct {
	Changes Batch
	// Replaced holds the states that changes have replaced, the oldest first.
	Replaced []cache.Object
	// HasOverflowed is true if a state did not fit into Replaced. Then the changes may concern
	// any object.
	HasOverflowed bool
}

// keepReplaced adds states to Replaced.
func (t *Task) keepReplaced(states ...cache.Object) {
	fitting := min(len(states), maxKept-len(t.Replaced))
	t.Replaced = append(t.Replaced, states[:fitting]...)
	t.HasOverflowed = t.HasOverflowed || fitting < len(states)
}

// Batch is one or more changes of one watched object.
type Batch struct {
	Priority queue.Priority
	// Cause is the cause of the last change.
	Cause queue.Cause
	// Last is the version of the last change, and Earlier holds the versions of the other changes. If
	// there were too many, a zero version stands for some of them.
	Last    echo.ShownVersion
	Earlier []echo.ShownVersion
}

// Merge adds later changes of the same object.
func (b *Batch) Merge(later Batch) {
	switch {
	case later.isEmpty():
		return
	case b.isEmpty():
		*b = later
		return
	}
	b.Earlier = append(append(b.Earlier, b.Last), later.Earlier...)
	if len(b.Earlier) > maxKept {
		b.Earlier = append(b.Earlier[:maxKept-1], echo.ShownVersion{})
	}
	b.Priority, b.Cause, b.Last = max(b.Priority, later.Priority), later.Cause, later.Last
}

func (b *Batch) isEmpty() bool { return b.Cause == queue.Cause{} }

// job is a watched object whose changes have not been handled. It is in Queue.ready, or running, or
// waits for retry.
type job struct {
	Task
	isRunning bool
	// isChanged is true if a change came while the job was running.
	isChanged bool
	// wait is the back-off since the first failure in a row.
	wait queue.RetryWait
	// retry puts the job into Queue.ready when its back-off is over.
	retry *time.Timer
}

// NewQueue returns an empty Queue. backoff returns the wait of an attempt: see [queue.RetryWait].
func NewQueue[S comparable](backoff func(attempt int) time.Duration) *Queue[S] {
	return &Queue[S]{jobs: make(map[Key[S]]*job), wake: make(chan struct{}, 1), backoff: backoff}
}

// Add adds a change of an object. before is the state that the change has replaced, or nil.
func (q *Queue[S]) Add(k Key[S], b Batch, before *cache.Object) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j := q.jobs[k]
	if j == nil {
		j = &job{}
		q.jobs[k] = j
		q.peak = max(q.peak, len(q.jobs))
		q.pushLocked(k)
	} else {
		q.recordChangeLocked(k, j)
	}
	j.Changes.Merge(b)
	if before != nil {
		j.keepReplaced(*before)
	}
}

// AddReplaced adds the state before a change that the predicates reject. The state counts only if an earlier change of
// the object has not been handled.
func (q *Queue[S]) AddReplaced(k Key[S], before cache.Object) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j := q.jobs[k]; j != nil {
		q.recordChangeLocked(k, j)
		j.keepReplaced(before)
	}
}

// recordChangeLocked records a change of the object of a job. The change ends the back-off of the job.
func (q *Queue[S]) recordChangeLocked(k Key[S], j *job) {
	if j.isRunning {
		j.isChanged = true
	} else if j.retry != nil && j.retry.Stop() {
		q.pushLocked(k)
	}
}

func (q *Queue[S]) pushLocked(k Key[S]) {
	q.ready = append(q.ready, k)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Barrier returns a channel. The channel is closed once each job that is ready now has been tried.
func (q *Queue[S]) Barrier() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	reached := make(chan struct{})
	q.barriers = append(q.barriers, reached)
	q.pushLocked(Key[S]{})
	return reached
}

// Begin waits for a job and returns its task, which ends with [Queue.End]. It returns false
// once ctx has ended. Begin must not be called concurrently.
func (q *Queue[S]) Begin(ctx context.Context) (k Key[S], t Task, ok bool) {
	for ctx.Err() == nil {
		if k, t, ok = q.startNext(); ok {
			return k, t, true
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
	return Key[S]{}, Task{}, false
}

// startNext starts the first job of ready. It returns false if there is none.
func (q *Queue[S]) startNext() (k Key[S], t Task, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ready) > 0 {
		k, q.ready = q.ready[0], q.ready[1:]
		if k == (Key[S]{}) {
			close(q.barriers[0])
			q.barriers = q.barriers[1:]
			continue
		}
		j := q.jobs[k]
		t, j.Task = j.Task, Task{}
		j.isRunning, j.retry = true, nil
		return k, t, true
	}
	return Key[S]{}, Task{}, false
}

// End ends a task. If hasFailed is true, rest is the part of the task to try once more.
func (q *Queue[S]) End(k Key[S], rest Task, hasFailed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j := q.jobs[k]
	j.isRunning = false
	isChanged := j.isChanged
	j.isChanged = false
	var after time.Duration
	if hasFailed {
		rest.Changes.Merge(j.Changes)
		rest.HasOverflowed = rest.HasOverflowed || j.HasOverflowed
		rest.keepReplaced(j.Replaced...)
		j.Task = rest
		after = j.wait.Next(time.Now(), 0, q.backoff)
	} else {
		j.wait = queue.RetryWait{}
	}
	switch {
	case isChanged:
		q.pushLocked(k)
	case hasFailed:
		j.retry = time.AfterFunc(after, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.pushLocked(k)
		})
	default:
		delete(q.jobs, k)
		if len(q.jobs) == 0 && q.peak > smallPeak { // a map does not shrink
			q.jobs, q.peak = make(map[Key[S]]*job), 0
		}
	}
}

// Stop stops all retries.
func (q *Queue[S]) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range q.jobs {
		if j.retry != nil {
			j.retry.Stop()
		}
	}
}
