package events

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

const (
	// flushTimeout is how long the last writes may take together. It is a part of the time
	// that a whole program has to end: see package operator.
	flushTimeout = 4 * time.Second
	// firstPause and longestPause bound the pause of all writes after a server could not be
	// asked, and of the writes of one event after the server failed with it.
	firstPause   = time.Second
	longestPause = time.Minute
	// maxFailures is how many times in a row the server may fail with one event.
	maxFailures = 5
	// reportInterval is the shortest time between two reports of dropped events.
	reportInterval = time.Minute
)

// Service marks a Recorder as a service, which ends after the parts that use it.
func (r *Recorder) Service() {}

// Needs returns the permissions to create and patch events, or what is wrong with the name.
func (r *Recorder) Needs() (kube.Needs, error) {
	resource, err := kube.ResourceOf[event]()
	if r.err != nil {
		err = r.err
	}
	return kube.Needs{Access: []kube.Access{{Resource: resource, Verbs: []kube.Verb{kube.VerbCreate, kube.VerbPatch}}}}, err
}

// Start writes events until ctx ends, and then the rest, for four seconds at most. It returns an
// error at once if the name of the recorder is not valid, or if the recorder runs already.
func (r *Recorder) Start(ctx context.Context, rt *controller.Runtime) error {
	if _, err := r.Needs(); err != nil {
		return err
	}
	if !r.begin() {
		return errRunning(r.controller)
	}
	w := writer{recorder: r, client: rt.Client, log: rt.Log}
	for ctx.Err() == nil {
		now := time.Now()
		s, at := r.next(now)
		if until := w.pausedUntil; until.After(now) {
			s, at = nil, until
		}
		w.reportDropped(false)
		if s != nil {
			w.write(ctx, s)
			continue
		}
		timer := time.NewTimer(at.Sub(now))
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	w.flush(ctx)
	return nil
}

// begin marks the recorder as running. It reports false if the recorder runs already.
func (r *Recorder) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		return false
	}
	r.running, r.ended = true, false
	if r.startTimer != nil {
		r.startTimer.Stop()
	}
	return true
}

// next returns a series to write now, or nil and when to call next again. It removes the
// series that are over.
func (r *Recorder) next(now time.Time) (*series, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first *series
	var over []*series
	at := now.Add(24 * time.Hour) // Event wakes the writer earlier
	for s := range r.allLocked {
		due := s.due()
		switch {
		case !s.isPending() && !due.After(now):
			over = append(over, s)
		case due.Before(at):
			first, at = s, due
		}
	}
	for _, s := range over {
		r.removeLocked(s)
	}
	if first == nil || at.After(now) {
		return nil, at
	}
	return first, now
}

// writer writes the series of a recorder. It belongs to one goroutine.
type writer struct {
	recorder *Recorder
	client   *kube.Client
	log      *slog.Logger

	pause       time.Duration
	pausedUntil time.Time
	// reported is how many dropped events the log has, and reportedAt the time of its last
	// report.
	reported   uint64
	reportedAt time.Time
	// refusal is the last error with which the server refused an event since then.
	refusal error
}

// write sends one request for s, and records its outcome.
func (w *writer) write(ctx context.Context, s *series) {
	r := w.recorder
	r.mu.Lock()
	creates, count := s.written == 0, s.count
	e := r.eventLocked(s)
	r.mu.Unlock()

	api := kube.Namespaced[event](w.client, e.Namespace)
	var err error
	if creates {
		_, err = api.Create(ctx, e)
	} else {
		_, err = api.Patch(ctx, e.Name, kube.MergePatch(struct {
			Series *eventSeries `json:"series"`
		}{e.Series}))
	}

	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch failed, answered := kube.AsError(err); {
	case err == nil:
		s.recordWrite(count, now)
		w.recordSuccessLocked()
	case creates && kube.IsAlreadyExists(err):
		// Only this recorder uses the name: an attempt whose fate was unknown has been carried
		// out, for one occurrence at least.
		s.recordWrite(1, now)
		w.recordSuccessLocked()
	case !creates && kube.IsNotFound(err):
		// Its time to live is over, or somebody deleted it.
		s.recordGone()
	case ctx.Err() != nil:
		// The program ends: flush tries once more.
	case kube.IsUnreachable(err), kube.IsTooManyRequests(err), kube.IsUnauthorized(err):
		w.pause = min(max(2*w.pause, firstPause), longestPause)
		w.pausedUntil = now.Add(w.pause)
		if answered && failed.RetryDelay() > w.pause {
			w.pausedUntil = now.Add(min(failed.RetryDelay(), longestPause))
		}
	case answered && failed.Code >= http.StatusInternalServerError && s.failures < maxFailures-1:
		s.failures++
		s.retryAt = now.Add(firstPause << s.failures)
	default:
		s.refused = true
		r.stats.Dropped += uint64(s.count - s.written)
		w.refusal = err
	}
}

// recordSuccessLocked records that the server has accepted a write.
func (w *writer) recordSuccessLocked() {
	w.recorder.stats.Writes++
	w.pause, w.pausedUntil = 0, time.Time{}
}

// eventLocked returns s as an Event.
func (r *Recorder) eventLocked(s *series) *event {
	regarding := s.regarding
	regarding.ResourceVersion = s.resourceVersion
	return &event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.regarding.eventNamespace(), Name: s.name},
		EventTime:  metav1.NewMicroTime(s.first), Series: s.repetitions(),
		ReportingController: r.controller, ReportingInstance: r.instance,
		Action: s.action, Reason: s.reason, Regarding: regarding, Note: s.note, Type: s.severity,
	}
}

// flush writes what is pending, each series once, and ends the recorder.
func (w *writer) flush(ctx context.Context) {
	r := w.recorder
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	var pending []*series
	r.mu.Lock()
	r.ended = true
	for s := range r.allLocked {
		if s.isPending() {
			pending = append(pending, s)
		}
	}
	r.mu.Unlock()
	for _, s := range pending {
		if ctx.Err() != nil {
			break
		}
		w.write(ctx, s)
	}
	r.mu.Lock()
	for s := range r.allLocked {
		if s.isPending() {
			r.stats.Dropped += uint64(s.count - s.written)
		}
	}
	clear(r.series)
	r.open, r.running = 0, false
	r.mu.Unlock()
	w.reportDropped(true)
}

// reportDropped logs how many events were dropped since the last report: the first time at
// once, then at intervals, and at the end in any case.
func (w *writer) reportDropped(atEnd bool) {
	now, dropped := time.Now(), w.recorder.Stats().Dropped
	if dropped == w.reported || !atEnd && !w.reportedAt.IsZero() && now.Sub(w.reportedAt) < reportInterval {
		return
	}
	attributes := []any{"recorder", w.recorder.controller, "dropped", dropped - w.reported, "in all", dropped}
	if w.refusal != nil {
		attributes = append(attributes, "error", w.refusal)
	}
	w.log.Warn("events were dropped", attributes...)
	w.reported, w.reportedAt, w.refusal = dropped, now, nil
}
