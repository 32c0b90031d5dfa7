package queue

import (
	"math"
	"sync"
	"time"
)

// maxQuietTimes is how many times the quiet time a trigger is held back at most.
const maxQuietTimes = 10

// Debouncer holds back the triggers of each key until none has come for the quiet time, and merges
// them. No trigger is held back for longer than ten times the quiet time.
//
// An example with a quiet time of 2 s. These triggers of one key lead to one trigger, at 4 s:
//
//	at    trigger              is released at
//	0 s   Deployment modified  2 s
//	1 s   Deployment modified  3 s
//	2 s   Service modified     4 s
//
// The released trigger has the cause of the last one, "Service modified". If a trigger came each
// second without an end, the triggers of the first 20 s would be released at 20 s.
type Debouncer struct {
	quiet time.Duration
	// add passes on a trigger.
	add func(Trigger)

	mu   sync.Mutex
	held map[Key]*debouncedTrigger
}

// debouncedTrigger is a held trigger. Later triggers of the same key are merged into it.
type debouncedTrigger struct {
	Trigger
	first time.Time
	timer *time.Timer
}

// NewDebouncer returns a Debouncer that passes triggers on by add.
func NewDebouncer(quiet time.Duration, add func(Trigger)) *Debouncer {
	return &Debouncer{quiet: quiet, add: add, held: make(map[Key]*debouncedTrigger)}
}

// Add holds t back.
func (d *Debouncer) Add(t Trigger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.held[t.Key]
	if h == nil {
		d.held[t.Key] = &debouncedTrigger{
			Trigger: t, first: time.Now(), timer: time.AfterFunc(d.quiet, func() { d.release(t.Key) }),
		}
		return
	}
	// The merged trigger is an echo only if each of the triggers is an echo.
	t.Echo = min(t.Echo, h.Echo)
	h.Trigger = t
	longest := min(d.quiet, math.MaxInt64/maxQuietTimes) * maxQuietTimes
	h.timer.Reset(max(0, min(d.quiet, longest-time.Since(h.first))))
}

// release passes on the trigger of an object, unless it was passed on already.
func (d *Debouncer) release(k Key) {
	d.mu.Lock()
	h := d.held[k]
	delete(d.held, k)
	d.mu.Unlock()
	if h != nil {
		d.add(h.Trigger)
	}
}

// Stop drops all triggers that are held back.
func (d *Debouncer) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.held {
		h.timer.Stop()
	}
	clear(d.held)
}
