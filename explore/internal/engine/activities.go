package engine

import (
	"fmt"
	"sync"
	"time"
)

// activities are what the runs that are being made do now. Its methods are safe for concurrent use.
type activities struct {
	mu  sync.Mutex
	all []*activity
}

// activity is what one run does now.
type activity struct {
	activities *activities
	// name names the run, and began is when the run began.
	name  string
	began time.Time

	mu   sync.Mutex
	wait runWait
}

// runWait is what a run waits for. The zero value means that the run does not wait.
type runWait struct {
	reason string
	// since is when the wait began, and until is when it ends at the latest.
	since, until time.Time
}

// begin adds a run. The caller calls end.
func (a *activities) begin(name string) *activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	added := &activity{activities: a, name: name, began: time.Now()}
	a.all = append(a.all, added)
	return added
}

// setWait sets what the run waits for, at the latest until a time.
func (a *activity) setWait(reason string, until time.Time) {
	a.putWait(runWait{reason, time.Now(), until})
}

func (a *activity) putWait(w runWait) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wait = w
}

// currentWait returns what the run waits for.
func (a *activity) currentWait() runWait {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wait
}

// endWait ends the wait.
func (a *activity) endWait() { a.putWait(runWait{}) }

// end removes the run.
func (a *activity) end() {
	a.activities.mu.Lock()
	defer a.activities.mu.Unlock()
	for i, each := range a.activities.all {
		if each == a {
			a.activities.all = append(a.activities.all[:i:i], a.activities.all[i+1:]...)
		}
	}
}

// longWait is how long a run waits before its wait is worth a line.
const longWait = 4 * time.Second

// describe returns what the run does that waits longest, or the oldest run if no run waits for long. It is empty if
// there is no run. Example:
//
//	crash at patch configmaps a (step 1, occurrence 1), restart at once: waits for healing, at most 40 s
func (a *activities) describe() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	longest, name := runWait{}, ""
	for _, each := range a.all {
		w := each.currentWait()
		if w.reason != "" && time.Since(w.since) >= longWait && (longest.reason == "" || w.since.Before(longest.since)) {
			longest, name = w, each.name
		}
	}
	switch {
	case longest.reason != "":
		return fmt.Sprintf("%s: waits for %s, at most %.0f s",
			name, longest.reason, max(time.Until(longest.until).Seconds(), 0))
	case len(a.all) > 0:
		return a.all[0].name
	}
	return ""
}
