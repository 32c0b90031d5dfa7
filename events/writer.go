package events

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

const (
	// flushTimeout is how long the last writes may take together. It is a part of the time
	// that a whole program has to end: see package operator.
	flushTimeout = 4 * time.Second
	// firstPause and longestPause bound the pause of all writes after a server could not be asked. The pause of one event
	// begins with twice firstPause after the server failed with the event.
	firstPause   = time.Second
	longestPause = time.Minute
	// maxFailures is how many times in a row the server may fail with one event.
	maxFailures = 5
	// reportInterval is the shortest time between two reports of dropped events.
	reportInterval = time.Minute
)

// writer writes the series of a recorder. It belongs to one goroutine.
type writer struct {
	// controller and instance are the reporting controller and the reporting instance of the events.
	controller, instance string
	table                *table
	client               *kube.Client
	log                  *slog.Logger

	pause       time.Duration
	pausedUntil time.Time
	// reportedCount is how many dropped events were logged, and reportedAt is the time of the last such report.
	reportedCount uint64
	reportedAt    time.Time
	// refusal is the last error with which the server refused an event since reportedAt.
	refusal error
}

// run writes events until ctx ends, and then the rest.
func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		now := time.Now()
		s, at := w.table.next(now)
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
		case <-w.table.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	w.flush(ctx)
}

// write sends one request for s, and records its outcome.
func (w *writer) write(ctx context.Context, s *series) {
	sent := w.table.snapshot(s)
	isNew := sent.written == 0
	e := w.eventOf(&sent)
	api := kube.Namespaced[event](w.client, e.Namespace)
	var err error
	if isNew {
		_, err = api.Create(ctx, e)
	} else {
		_, err = api.Patch(ctx, e.Name, kube.MergePatch(struct {
			Series *eventSeries `json:"series"`
		}{e.Series}))
	}

	now := time.Now()
	switch apiError, isAPIError := kube.AsError(err); {
	case err == nil:
		w.recordSuccess(s, sent.count, now)
	case isNew && kube.IsAlreadyExists(err):
		// Only this recorder uses the name. So the server has carried out an attempt without an answer, for one
		// occurrence at least.
		w.recordSuccess(s, 1, now)
	case !isNew && kube.IsNotFound(err):
		// Its time to live is over, or somebody deleted it.
		w.table.changeSeries(func(*Stats) { s.recordGone() })
	case ctx.Err() != nil:
		// The program ends: flush tries once more.
	case kube.IsUnreachable(err), kube.IsTooManyRequests(err), kube.HasReason(err, metav1.StatusReasonUnauthorized):
		w.pause = min(max(2*w.pause, firstPause), longestPause)
		w.pausedUntil = now.Add(w.pause)
		if isAPIError && apiError.RetryDelay() > w.pause {
			w.pausedUntil = now.Add(min(apiError.RetryDelay(), longestPause))
		}
	case isAPIError && apiError.Code >= http.StatusInternalServerError && sent.failureCount < maxFailures-1:
		w.table.changeSeries(func(*Stats) { s.recordFailure(now) })
	default:
		w.table.changeSeries(func(stats *Stats) {
			s.isRefused = true
			stats.Dropped += uint64(s.count - s.written)
		})
		w.refusal = err
	}
}

// recordSuccess records that the cluster knows count occurrences of s. It ends the pause of all writes.
func (w *writer) recordSuccess(s *series, count int32, now time.Time) {
	w.table.changeSeries(func(stats *Stats) {
		s.recordWrite(count, now)
		stats.Writes++
	})
	w.pause, w.pausedUntil = 0, time.Time{}
}

// eventOf returns s as an Event.
func (w *writer) eventOf(s *series) *event {
	regarding := s.regarding
	regarding.ResourceVersion = s.resourceVersion
	e := &event{
		// The API server accepts no namespace but default for an event about an object outside of namespaces.
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(regarding.Namespace, metav1.NamespaceDefault), Name: s.name},
		EventTime:  metav1.NewMicroTime(s.first), ReportingController: w.controller, ReportingInstance: w.instance,
		Action: s.action, Reason: s.reason, Regarding: regarding, Note: s.note, Type: s.severity,
	}
	if s.count > 1 {
		e.Series = &eventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.last)}
	}
	return e
}

// flush writes what is pending, each series once, and empties the table.
func (w *writer) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	for _, s := range w.table.close() {
		if ctx.Err() != nil {
			break
		}
		w.write(ctx, s)
	}
	w.table.clear()
	w.reportDropped(true)
}

// reportDropped logs how many events were dropped since the last report: the first time at
// once, then at intervals, and with atEnd in any case.
func (w *writer) reportDropped(atEnd bool) {
	now, dropped := time.Now(), w.table.currentStats().Dropped
	if dropped == w.reportedCount || !atEnd && !w.reportedAt.IsZero() && now.Sub(w.reportedAt) < reportInterval {
		return
	}
	attributes := []any{"recorder", w.controller, "dropped", dropped - w.reportedCount, "in all", dropped}
	if w.refusal != nil {
		attributes = append(attributes, "error", w.refusal)
	}
	w.log.Warn("events were dropped", attributes...)
	w.reportedCount, w.reportedAt, w.refusal = dropped, now, nil
}
