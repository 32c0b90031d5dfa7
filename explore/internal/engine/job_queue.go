package engine

import (
	"slices"
	"sync"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// jobQueue holds the runs that were not begun. Its methods are safe for concurrent use.
type jobQueue struct {
	mu sync.Mutex
	// planned holds the planned runs, which are begun first. more holds further runs: see hasBudget.
	planned, more []job
	// hasBudget is true if the exploration has a budget of time. Then the first run of each kind comes before all second
	// runs, and all of more may be begun. Without a budget, only a kind without a try gets runs of more, and at most
	// maxMoreTries.
	hasBudget bool
	// tries counts, by the kind, the runs that were begun, without those that have missed their faults. moreTries counts,
	// by the kind, all runs of more that were begun.
	tries, moreTries map[faults.Kind]int
}

// maxMoreTries is how many runs of more a kind gets without a budget, if no planned run of the kind has had its fault.
const maxMoreTries = 4

// newJobQueue returns a queue of planned runs, and of more runs.
func newJobQueue(planned, more []job, hasBudget bool) *jobQueue {
	return &jobQueue{
		planned: slices.Clone(planned), more: slices.Clone(more), hasBudget: hasBudget,
		tries: make(map[faults.Kind]int), moreTries: make(map[faults.Kind]int),
	}
}

// next removes and returns the run to begin. Example with a budget: of runs with a crash, a crash and a conflict, the
// crash comes first, then the conflict, and then the second crash. isMore is true for a run of more. isLeft is false if
// no run is to be begun now. A later call may return a run all the same, after recordMissed: the kind of a run that has
// missed its fault needs another run.
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
	i := slices.IndexFunc(q.more,
		func(j job) bool { return isUntried(j) && (q.hasBudget || q.moreTries[j.kind] < maxMoreTries) })
	if i < 0 && q.hasBudget && len(q.more) > 0 {
		i = 0
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
