package controller

import (
	"fmt"
	"sync"
	"time"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// mostDebounced is how many times the quiet time a trigger is held back at most.
const mostDebounced = 10

// Debounce holds back the triggers of an object until none has come for quiet, so that a burst of
// changes leads to one reconcile. No trigger is held back for longer than ten times quiet. [Result]
// names the last cause of a burst. Deletions are held back too. Initial lists, resyncs, delayed triggers,
// requeues and retries are not held back. In tests, quiet is real time. By default nothing is held back:
// the changes during a reconcile lead to one more reconcile anyway.
func Debounce(quiet time.Duration) Option {
	return optionFunc(func(s *settings) {
		if quiet <= 0 {
			s.reject(fmt.Errorf("the quiet time %s of controller.Debounce is not positive: leave it out for none", quiet))
		}
		s.quiet = quiet
	})
}

// debouncer merges the triggers of each object that follow one another soon.
type debouncer struct {
	quiet time.Duration
	// add passes on a trigger.
	add func(queue.Trigger)

	mu   sync.Mutex
	held map[kube.Key]*debouncedTrigger
}

// debouncedTrigger is a trigger that is held back, merged with the triggers that came after it.
type debouncedTrigger struct {
	queue.Trigger
	first time.Time
	timer *time.Timer
}

func newDebouncer(quiet time.Duration, add func(queue.Trigger)) *debouncer {
	return &debouncer{quiet: quiet, add: add, held: make(map[kube.Key]*debouncedTrigger)}
}

// hold holds t back.
func (d *debouncer) hold(t queue.Trigger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.held[t.Key]
	if h == nil {
		d.held[t.Key] = &debouncedTrigger{Trigger: t, first: time.Now(), timer: time.AfterFunc(d.quiet, func() { d.release(t.Key) })}
		return
	}
	// A reconcile for several triggers is one for an echo only if each of them is an echo.
	t.Echo = min(t.Echo, h.Echo)
	h.Trigger = t
	h.timer.Reset(max(0, min(d.quiet, mostDebounced*d.quiet-time.Since(h.first))))
}

// release passes on the trigger of an object, unless it was passed on already.
func (d *debouncer) release(k kube.Key) {
	d.mu.Lock()
	h := d.held[k]
	delete(d.held, k)
	d.mu.Unlock()
	if h != nil {
		d.add(h.Trigger)
	}
}

// stop drops all triggers that are held back.
func (d *debouncer) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.held {
		h.timer.Stop()
	}
	clear(d.held)
}
