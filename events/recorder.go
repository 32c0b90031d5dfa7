package events

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
)

const (
	// maxOpen is how many series there are at a time, which bounds the memory that they
	// take to some 3 MB at worst.
	maxOpen = 2048
	// maxNotes is how many series there are at a time that differ by their note only.
	maxNotes = 8
)

// Recorder records events in the name of one controller. It is made by [New], and is a
// part of the program, a service of it: events are written while it runs, and those that
// are recorded before that wait for it. All methods can be used concurrently.
type Recorder struct {
	controller string
	instance   string
	err        error
	// wake says that something may be due earlier than was known.
	wake chan struct{}

	mu      sync.Mutex
	kinds   map[kind][]*series // the youngest last
	open    int                // series in kinds
	running bool
	ended   bool
	stats   Stats
	warned  bool
}

// Stats are the figures of a recorder since it was made.
type Stats struct {
	// Recorded counts the calls of Event.
	Recorded uint64
	// Writes counts the requests that were successful.
	Writes uint64
	// Dropped counts the occurrences that the cluster was not told of and will not be:
	// because there were too many, because it refused them, or because the program ended.
	Dropped uint64
	// Open is how many series are being counted now.
	Open int
}

// New makes a recorder. The name, such as webapp-operator or example.com/webapp, says who
// reports the events; it must be a qualified name in the sense of Kubernetes, or it is an
// error of the program when it starts. The Pod, by its host name, is told along with it.
func New(name string) *Recorder {
	r := &Recorder{controller: name, wake: make(chan struct{}, 1), kinds: make(map[kind][]*series)}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		r.err = fmt.Errorf("the events recorder %q: that is no name to report events by: %s", name, problems[0])
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r.instance = cut(name+"-"+host, maxInstance)
	return r
}

// Event records that something happened to obj, which must have been read. The reason is
// why, in one CamelCase word, such as ImageMissing, and the action what was done or tried,
// such as Pull; each has 128 bytes at most, and one that is empty is taken from the other.
// The note is for people: a format as in package fmt, with its args; more than 1024 bytes
// of it are cut off.
//
// It returns at once, makes no request, and does not keep obj.
func (r *Recorder) Event(obj kube.Object, t Type, reason, action, note string, args ...any) {
	now := time.Now()
	about, ok := referenceTo(obj)
	if t != Warning {
		t = Normal // the API has no others
	}
	k := kind{regarding: about, severity: t}
	k.regarding.ResourceVersion = ""
	k.reason = cut(cmp.Or(reason, action, "Unspecified"), maxReason)
	k.action = cut(cmp.Or(action, reason, "Unspecified"), maxAction)
	note = cut(fmt.Sprintf(note, args...), maxNote)

	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Recorded++
	if !ok || r.ended {
		r.stats.Dropped++
		return
	}
	r.occurred(k, note, about.ResourceVersion, now)
	select {
	case r.wake <- struct{}{}:
	default: // it has been said
	}
}

// occurred counts an occurrence. The caller has r.mu.
func (r *Recorder) occurred(k kind, note, version string, now time.Time) {
	alike := r.kinds[k]
	var s *series
	for _, other := range alike {
		if other.note == note {
			s = other
		}
	}
	if s == nil && len(alike) == maxNotes {
		s = alike[maxNotes-1]
	}
	if s != nil {
		s.count++
		s.last = now
		if s.refused {
			r.stats.Dropped++
		}
		return
	}
	if r.open == maxOpen && !r.makeRoom() {
		r.stats.Dropped++
		if !r.running && !r.warned {
			r.warned = true
			slog.Warn("events are recorded but not written: give their recorder to operator.Main", "recorder", r.controller)
		}
		return
	}
	r.kinds[k] = append(alike, &series{
		kind: k, note: note, resourceVersion: version, first: now, last: now, count: 1,
		name: eventName(k.regarding, suffix()),
	})
	r.open++
}

// makeRoom forgets the series that has not occurred for the longest time, of those of
// which the cluster knows all. The caller has r.mu.
func (r *Recorder) makeRoom() bool {
	var oldest *series
	for s := range r.all {
		if !s.pending() && (oldest == nil || s.last.Before(oldest.last)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	r.forget(oldest)
	return true
}

// all are the open series. The caller has r.mu.
func (r *Recorder) all(yield func(*series) bool) {
	for _, alike := range r.kinds {
		for _, s := range alike {
			if !yield(s) {
				return
			}
		}
	}
}

// forget ends a series. The caller has r.mu.
func (r *Recorder) forget(s *series) {
	var rest []*series
	for _, other := range r.kinds[s.kind] {
		if other != s {
			rest = append(rest, other)
		}
	}
	if len(rest) == 0 {
		delete(r.kinds, s.kind)
	} else {
		r.kinds[s.kind] = rest
	}
	r.open--
}

// suffix tells events about one object apart. It is left to chance, so that a name that is
// taken can only be our own.
func suffix() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// Stats are the figures up to now.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Open = r.open
	return s
}

// errRunning is the error of a second Start.
func errRunning(name string) error {
	return fmt.Errorf("the events recorder %q: %w", name, errors.New("it runs already: give it to one program, once"))
}
