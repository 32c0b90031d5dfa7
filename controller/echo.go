package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// echoCount is how many writes are remembered. Streams show a write within moments.
const echoCount = 256

// echoes are the latest writes of one controller, by what they made. The cache knows which
// changes this program made; but what another of its controllers did may be just what an
// object of this one, which backs off, waits for.
//
// A stream may show a change before the answer of the write is there. So what a change
// triggers is held while a write to the same object is under way, until its answer tells
// whether they are one.
type echoes struct {
	mu   sync.Mutex
	made map[echo]bool
	// ring holds the keys of made, the oldest at next.
	ring [echoCount]echo
	next int
	// flying are the objects that are being written.
	flying map[place]*flight
}

// echo is one version of an object; an empty version is its deletion.
type echo struct {
	uid     types.UID
	version string
}

// place is an object, whatever its uid.
type place struct {
	group, plural, namespace, name string
}

func placeOf(r kube.Resource, namespace, name string) place {
	return place{r.Group, r.Plural, namespace, name}
}

// flight is the writes to one object that are under way.
type flight struct {
	writes int
	held   []held
}

// held is a trigger that may be an echo of change.
type held struct {
	trigger queue.Trigger
	change  echo
}

// begin notes that a write is under way.
func (e *echoes) begin(at place) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flying == nil {
		e.flying = make(map[place]*flight)
	}
	f := e.flying[at]
	if f == nil {
		f = &flight{}
		e.flying[at] = f
	}
	f.writes++
}

// end notes what a write made, which is the zero echo if it is not known, and gives back
// what was held because of it.
func (e *echoes) end(at place, made echo) []queue.Trigger {
	e.mu.Lock()
	defer e.mu.Unlock()
	if made.uid != "" && !e.made[made] {
		if e.made == nil {
			e.made = make(map[echo]bool, echoCount)
		}
		delete(e.made, e.ring[e.next])
		e.made[made] = true
		e.ring[e.next] = made
		e.next = (e.next + 1) % echoCount
	}
	f := e.flying[at]
	if f.writes--; f.writes > 0 {
		return nil
	}
	delete(e.flying, at)
	triggers := make([]queue.Trigger, 0, len(f.held))
	for _, h := range f.held {
		h.trigger.Echo = e.made[h.change]
		triggers = append(triggers, h.trigger)
	}
	return triggers
}

// mark tells of triggers whether they are echoes of a change; it gives back none if that
// is not known yet, and holds them.
func (e *echoes) mark(at place, change echo, triggers []queue.Trigger) []queue.Trigger {
	e.mu.Lock()
	defer e.mu.Unlock()
	made := e.made[change]
	if f := e.flying[at]; f != nil && !made {
		for _, t := range triggers {
			f.held = append(f.held, held{t, change})
		}
		return nil
	}
	for i := range triggers {
		triggers[i].Echo = made
	}
	return triggers
}
