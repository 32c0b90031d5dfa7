package engine

import (
	"slices"
	"sync"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// jobQueue holds the planned runs that were not begun. Its methods are safe for concurrent use.
type jobQueue struct {
	mu sync.Mutex
	// planned are begun before more.
	planned, more []job
	// hasBudget is true if runs of kinds that have not happened come first, and the rest of a budget goes to more.
	// Otherwise only kinds that no planned run has shown get some of more.
	hasBudget bool
	// tries counts, by the kind, the runs that were begun and have not missed their faults. moreTries counts those of more.
	tries, moreTries map[faults.Kind]int
}

// maxMoreTries is how many more runs a kind gets that no planned run has shown, if there is no budget.
const maxMoreTries = 4

// newJobQueue returns a queue of planned runs, and of more runs.
func newJobQueue(planned, more []job, hasBudget bool) *jobQueue {
	return &jobQueue{
		planned: slices.Clone(planned), more: slices.Clone(more), hasBudget: hasBudget,
		tries: make(map[faults.Kind]int), moreTries: make(map[faults.Kind]int),
	}
}

// next removes and returns the run to begin. Example with a budget: of runs with a crash, a crash and a conflict, the crash
// comes first, then the conflict, and then the second crash. isMore is true for a run that was not planned. isLeft is false
// if no run is left to begin now. A run that misses its fault may make another one due.
func (q *jobQueue) next() (j job, isMore, isLeft bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	isUntried := func(j job) bool { return q.tries[j.kind] == 0 }
	if len(q.planned) > 0 {
		i := 0
		if q.hasBudget {
			i = max(slices.IndexFunc(q.planned, isUntried), 0)
		}
		return q.beginLocked(&q.planned, i), false, true
	}
	i := slices.IndexFunc(q.more, func(j job) bool { return isUntried(j) && (q.hasBudget || q.moreTries[j.kind] < maxMoreTries) })
	if i < 0 && q.hasBudget {
		i = min(0, len(q.more)-1)
	}
	if i < 0 {
		return j, false, false
	}
	j = q.beginLocked(&q.more, i)
	q.moreTries[j.kind]++
	return j, true, true
}

// beginLocked removes and returns a run of the queue.
func (q *jobQueue) beginLocked(from *[]job, i int) job {
	j := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	q.tries[j.kind]++
	return j
}

// recordMissed records that a run was made, and its faults have not happened.
func (q *jobQueue) recordMissed(k faults.Kind) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tries[k]--
}

// plannedCount returns the number of planned runs that were not begun.
func (q *jobQueue) plannedCount() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.planned)
}
