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
	// farewell is how long the last writes may take in all.
	farewell = 5 * time.Second
	// firstPause and longestPause are those after the server could not be asked.
	firstPause   = time.Second
	longestPause = time.Minute
	// maxFailures is how often in a row the server may fail with one event.
	maxFailures = 5
	// tellEvery is how long is waited before more dropped events are told.
	tellEvery = time.Minute
)

// Service makes a Recorder end after the parts that use it.
func (r *Recorder) Service() {}

// Needs is permission to write events, or what is wrong with the name.
func (r *Recorder) Needs() (kube.Needs, error) {
	resource, err := kube.ResourceOf[event]()
	if r.err != nil {
		err = r.err
	}
	return kube.Needs{Access: []kube.Access{{Resource: resource, Verbs: []kube.Verb{kube.VerbCreate, kube.VerbPatch}}}}, err
}

// Start writes events until ctx ends, and then what is left, for five seconds at most.
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
		w.tellDropped(false)
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

func (r *Recorder) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		return false
	}
	r.running, r.ended = true, false
	return true
}

// next is a series to be written now, or when the next thing is to be done. Series that
// are over are forgotten.
func (r *Recorder) next(now time.Time) (*series, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first *series
	var over []*series
	at := now.Add(24 * time.Hour) // Event says when there is something
	for s := range r.all {
		due := s.due()
		switch {
		case !s.pending() && !due.After(now):
			over = append(over, s)
		case due.Before(at):
			first, at = s, due
		}
	}
	for _, s := range over {
		r.forget(s)
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
	// told is how many dropped events were told, and when.
	told   uint64
	toldAt time.Time
	// refusal is the last one.
	refusal error
}

// write makes one request for s, and says when to come again.
func (w *writer) write(ctx context.Context, s *series) {
	r := w.recorder
	r.mu.Lock()
	creates, count := s.written == 0, s.count
	e := r.event(s)
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
		s.took(count, now)
		w.wrote()
	case creates && kube.IsAlreadyExists(err):
		// The name is ours: an attempt whose fate was unknown has been carried out. What it
		// said was once at least.
		s.took(1, now)
		w.wrote()
	case !creates && kube.IsNotFound(err):
		// Its time to live is over, or somebody deleted it.
		s.written, s.retry = 0, time.Time{}
		s.name = eventName(s.regarding, suffix())
	case ctx.Err() != nil:
		// The program ends: there is one more attempt.
	case kube.IsUnreachable(err), kube.IsTooManyRequests(err), kube.IsUnauthorized(err):
		w.pause = min(max(2*w.pause, firstPause), longestPause)
		w.pausedUntil = now.Add(w.pause)
		if answered && failed.RetryDelay() > w.pause {
			w.pausedUntil = now.Add(min(failed.RetryDelay(), longestPause))
		}
	case answered && failed.Code >= http.StatusInternalServerError && s.failures < maxFailures-1:
		s.failures++
		s.retry = now.Add(firstPause << s.failures)
	default:
		s.refused = true
		r.stats.Dropped += uint64(s.count - s.written)
		w.refusal = err
	}
}

func (w *writer) wrote() {
	w.recorder.stats.Writes++
	w.pause, w.pausedUntil = 0, time.Time{}
}

// event is s as it is written. The caller has r.mu.
func (r *Recorder) event(s *series) *event {
	about := s.regarding
	about.ResourceVersion = s.resourceVersion
	return &event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.regarding.namespace(), Name: s.name},
		EventTime:  metav1.NewMicroTime(s.first), Series: s.series(),
		ReportingController: r.controller, ReportingInstance: r.instance,
		Action: s.action, Reason: s.reason, Regarding: about, Note: s.note, Type: s.severity,
	}
}

// flush writes what is left, each once, and ends the recorder.
func (w *writer) flush(ctx context.Context) {
	r := w.recorder
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	var left []*series
	r.mu.Lock()
	r.ended = true
	for s := range r.all {
		if s.pending() {
			left = append(left, s)
		}
	}
	r.mu.Unlock()
	for _, s := range left {
		if ctx.Err() != nil {
			break
		}
		w.write(ctx, s)
	}
	r.mu.Lock()
	for s := range r.all {
		if s.pending() {
			r.stats.Dropped += uint64(s.count - s.written)
		}
	}
	clear(r.kinds)
	r.open, r.running = 0, false
	r.mu.Unlock()
	w.tellDropped(true)
}

// tellDropped logs how many events were dropped since it was said last; at once, and then
// once in a while.
func (w *writer) tellDropped(atLast bool) {
	now, dropped := time.Now(), w.recorder.Stats().Dropped
	if dropped == w.told || !atLast && !w.toldAt.IsZero() && now.Sub(w.toldAt) < tellEvery {
		return
	}
	attributes := []any{"recorder", w.recorder.controller, "dropped", dropped - w.told, "in all", dropped}
	if w.refusal != nil {
		attributes = append(attributes, "error", w.refusal)
	}
	w.log.Warn("events were dropped", attributes...)
	w.told, w.toldAt, w.refusal = dropped, now, nil
}
