package events

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// startTimeout is how long after its first event a recorder must have been started. All parts of a
// program start at the same time.
const startTimeout = 5 * time.Second

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
	table      *table

	mu         sync.Mutex
	isRunning  bool
	hasStarted bool
	// startTimer warns if the recorder is not started. It is nil before the first event.
	startTimer *time.Timer
}

// Stats counts what a recorder has done since it was made.
type Stats struct {
	// Recorded counts the calls of [Recorder.Normal] and [Recorder.Warning].
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
	r := &Recorder{controller: name, table: newTable()}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		r.err = fmt.Errorf("the events recorder %q: the name is not valid as that of a reporting controller: %s",
			name, problems[0])
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r.instance = truncate(name+"-"+host, maxInstance)
	return r
}

// Normal records an event that needs no attention. See [Recorder.Warning] for the arguments.
func (r *Recorder) Normal(obj kube.Object, reason, action, note string, args ...any) {
	r.record(obj, normal, reason, action, note, args...)
}

// Warning records an event that somebody should look at: something happened to obj. The program must have read obj
// from the cluster. The reason is one CamelCase word for why it happened, such as ImageMissing. The action is one
// CamelCase word for what was done or tried, such as Pull. Each has at most 128 bytes. If one of the two is empty, it
// gets the text of the other. The note is a text for people, a format as in package fmt for args. It is cut off
// after 1024 bytes.
//
// Warning returns at once, sends no request, and does not keep obj.
func (r *Recorder) Warning(obj kube.Object, reason, action, note string, args ...any) {
	r.record(obj, warning, reason, action, note, args...)
}

// record records an event of the severity s.
func (r *Recorder) record(obj kube.Object, s severity, reason, action, note string, args ...any) {
	now := time.Now()
	regarding, ok := referenceTo(obj)
	if !ok {
		r.table.countUnnamed()
		return
	}
	k := seriesKey{
		regarding: regarding, severity: s,
		reason: truncate(cmp.Or(reason, action, "Unspecified"), maxReason),
		action: truncate(cmp.Or(action, reason, "Unspecified"), maxAction),
	}
	k.regarding.ResourceVersion = ""
	if !r.table.countOccurrence(k, truncate(fmt.Sprintf(note, args...), maxNote), regarding.ResourceVersion, now) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hasStarted && r.startTimer == nil {
		r.startTimer = time.AfterFunc(startTimeout, r.warnUnlessStarted)
	}
}

// warnUnlessStarted logs a warning unless the recorder was started: its events are written
// nowhere.
func (r *Recorder) warnUnlessStarted() {
	r.mu.Lock()
	hasStarted := r.hasStarted
	r.mu.Unlock()
	if !hasStarted {
		slog.Warn("events are recorded, but not written: give their recorder to operator.Main", "recorder", r.controller)
	}
}

// Stats returns the counts up to now.
func (r *Recorder) Stats() Stats { return r.table.currentStats() }

// Needs returns the needs of a service that creates and patches events, or what is wrong with the name.
func (r *Recorder) Needs() (kube.Needs, error) {
	resource, err := kube.ResourceOf[event]()
	if r.err != nil {
		err = r.err
	}
	return kube.Needs{
		Service: true, Access: []kube.Access{{Resource: resource, Verbs: []wire.Verb{wire.VerbCreate, wire.VerbPatch}}},
	}, err
}

// Start writes events until ctx ends, and then the rest, for four seconds at most. It returns an
// error at once if the name of the recorder is not valid, or if the recorder runs already.
func (r *Recorder) Start(ctx context.Context, rt *controller.Runtime) error {
	if _, err := r.Needs(); err != nil {
		return err
	}
	if !r.begin() {
		return fmt.Errorf("the events recorder %q: it runs already: give it to one program, once", r.controller)
	}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.isRunning = false
	}()
	w := writer{controller: r.controller, instance: r.instance, table: r.table, client: rt.Client, log: rt.Log}
	w.run(ctx)
	return nil
}

// begin marks the recorder as running. It returns false if the recorder runs already.
func (r *Recorder) begin() (hasBegun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isRunning {
		return false
	}
	r.isRunning, r.hasStarted = true, true
	r.table.open()
	if r.startTimer != nil {
		r.startTimer.Stop()
	}
	return true
}
