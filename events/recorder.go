package events

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/kube"
)

const (
	// maxOpen is how many series there are at a time. It bounds their memory to about 3 MB.
	maxOpen = 2048
	// maxNotes is how many series there are at a time that differ by their note only.
	maxNotes = 8
	// startTimeout is how long after its first event a recorder must have been started. All
	// parts of a program start at the same time.
	startTimeout = 5 * time.Second
)

// Recorder records events in the name of one controller. [New] returns a Recorder. It is a
// service of the program (see package operator) and writes the events: give it to operator.Main.
// Events that are recorded before the program runs wait for it. A recorder that is not
// started within five seconds of its first event logs a warning to [slog.Default].
//
// All methods may be called concurrently.
type Recorder struct {
	controller string
	instance   string
	err        error
	// wake receives a value when a series may be due earlier than before.
	wake chan struct{}

	mu      sync.Mutex
	series  map[seriesKey][]*series // the newest last
	open    int                     // the number of all series
	running bool
	ended   bool
	stats   Stats
	// startTimer warns if the recorder is not started. It is nil before the first event.
	startTimer *time.Timer
}

// Stats holds the figures of a recorder since it was made.
type Stats struct {
	// Recorded counts the calls of Event.
	Recorded uint64
	// Writes counts the requests that succeeded.
	Writes uint64
	// Dropped counts the occurrences that the cluster does not know and will not know: there
	// were too many, the cluster refused them, or the program ended.
	Dropped uint64
	// Open is the number of series that are being counted now.
	Open int
}

// New returns a recorder. The name, such as webapp-operator or example.com/webapp, is the
// reporting controller of the events, and must be a qualified name in the sense of
// Kubernetes. If it is not, the program fails when it starts. The reporting instance is the
// name with the host name, which in a Pod is the name of the Pod.
func New(name string) *Recorder {
	r := &Recorder{controller: name, wake: make(chan struct{}, 1), series: make(map[seriesKey][]*series)}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		r.err = fmt.Errorf("the events recorder %q: the name is not valid as that of a reporting controller: %s", name, problems[0])
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r.instance = truncate(name+"-"+host, maxInstance)
	return r
}

// Event records that something happened to obj, which must have been read from the cluster.
// The reason is one CamelCase word for why it happened, such as ImageMissing. The action is
// one CamelCase word for what was done or tried, such as Pull. Each has at most 128 bytes. If one
// of the two is empty, it gets the text of the other. The note is a text for people, a format as
// in package fmt for args. It is cut off after 1024 bytes. A t other than Warning means Normal.
//
// Event returns at once, sends no request, and does not keep obj.
func (r *Recorder) Event(obj kube.Object, t Type, reason, action, note string, args ...any) {
	now := time.Now()
	regarding, ok := referenceTo(obj)
	if t != Warning {
		t = Normal // the API has no others
	}
	k := seriesKey{
		regarding: regarding, severity: t,
		reason: truncate(cmp.Or(reason, action, "Unspecified"), maxReason),
		action: truncate(cmp.Or(action, reason, "Unspecified"), maxAction),
	}
	k.regarding.ResourceVersion = ""
	note = truncate(fmt.Sprintf(note, args...), maxNote)

	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Recorded++
	if !ok || r.ended {
		r.stats.Dropped++
		return
	}
	if !r.running && r.startTimer == nil {
		r.startTimer = time.AfterFunc(startTimeout, r.warnUnlessStarted)
	}
	r.countLocked(k, note, regarding.ResourceVersion, now)
	select {
	case r.wake <- struct{}{}:
	default: // it has a value already
	}
}

// warnUnlessStarted logs a warning unless the recorder was started: its events are written
// nowhere.
func (r *Recorder) warnUnlessStarted() {
	r.mu.Lock()
	started := r.running || r.ended
	r.mu.Unlock()
	if !started {
		slog.Warn("events are recorded, but not written: give their recorder to operator.Main", "recorder", r.controller)
	}
}

// countLocked counts an occurrence.
func (r *Recorder) countLocked(k seriesKey, note, resourceVersion string, now time.Time) {
	siblings := r.series[k]
	var s *series
	if i := slices.IndexFunc(siblings, func(o *series) bool { return o.note == note }); i >= 0 {
		s = siblings[i]
	} else if len(siblings) == maxNotes {
		s = siblings[maxNotes-1]
	}
	if s != nil {
		s.count++
		s.last = now
		if s.refused {
			r.stats.Dropped++
		}
		return
	}
	if r.open == maxOpen && !r.evictLocked() {
		r.stats.Dropped++
		return
	}
	r.series[k] = append(siblings, &series{
		seriesKey: k, note: note, resourceVersion: resourceVersion, first: now, last: now, count: 1,
		name: newEventName(k.regarding),
	})
	r.open++
}

// evictLocked removes the series whose last occurrence is the oldest, among the series that the
// cluster knows completely. It reports false if there is no such series.
func (r *Recorder) evictLocked() bool {
	var oldest *series
	for s := range r.allLocked {
		if !s.isPending() && (oldest == nil || s.last.Before(oldest.last)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	r.removeLocked(oldest)
	return true
}

// allLocked yields all series.
func (r *Recorder) allLocked(yield func(*series) bool) {
	for _, siblings := range r.series {
		for _, s := range siblings {
			if !yield(s) {
				return
			}
		}
	}
}

// removeLocked removes a series.
func (r *Recorder) removeLocked(s *series) {
	rest := slices.DeleteFunc(r.series[s.seriesKey], func(o *series) bool { return o == s })
	if len(rest) == 0 {
		delete(r.series, s.seriesKey)
	} else {
		r.series[s.seriesKey] = rest
	}
	r.open--
}

// Stats returns the figures up to now.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Open = r.open
	return s
}

// errRunning returns the error of a second Start.
func errRunning(name string) error {
	return fmt.Errorf("the events recorder %q: %w", name, errors.New("it runs already: give it to one program, once"))
}
