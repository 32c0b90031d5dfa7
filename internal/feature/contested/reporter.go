package contested

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/yare-go/yare/kube/wire"
)

const (
	// maxCount is how often a field may be set back in window before it is contested.
	maxCount = 5
	window   = 10 * time.Minute
	// reportPeriod is the time between two reports of a field that stays contested.
	reportPeriod = time.Hour
	// maxFields bounds the fields that are remembered.
	maxFields = 1000
)

// Observer receives the fields that are set back. Several goroutines call it, and it must not block.
type Observer interface {
	// ObserveSetBack is called each time that a field was set back. isContested is true if it was set back more than five
	// times in ten minutes, once in an hour for each field and manager.
	ObserveSetBack(object wire.Ref, field Field, isContested bool)
}

// Reporter logs contested fields. It is safe for concurrent use.
type Reporter struct {
	log      *slog.Logger
	observer Observer

	mu     sync.Mutex
	fields map[objectField]*history
}

// objectField is a field of an object. The object has no uid.
type objectField struct {
	object wire.Ref
	field  Field
}

// history is when a field was set back.
type history struct {
	// times are the last times, the newest one last. There are maxCount+1 at most.
	times    []time.Time
	reported time.Time
}

// NewReporter returns a Reporter. observer gets each field that is set back if it is an [Observer].
func NewReporter(log *slog.Logger, observer any) *Reporter {
	r := &Reporter{log: log, fields: make(map[objectField]*history)}
	r.observer, _ = observer.(Observer)
	return r
}

// Report reports the fields of an object that were set back now.
func (r *Reporter) Report(object wire.Ref, fields []Field) {
	object.UID = ""
	for _, f := range fields {
		isContested := r.record(objectField{object, f})
		if r.observer != nil {
			r.observer.ObserveSetBack(object, f, isContested)
		}
		if isContested {
			r.log.Warn("a field is set back again and again, because somebody else changes it: leave the field to one of both",
				"object", object.String(), "field", f.Path, "changedBy", cmp.Or(f.Manager, "unknown: the field was removed"))
		}
	}
}

// record records that a field was set back now. It reports whether the field is contested, once in reportPeriod.
func (r *Reporter) record(f objectField) (isContested bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	h := r.fields[f]
	if h == nil {
		if len(r.fields) >= maxFields {
			r.forgetOldLocked(now)
		}
		if len(r.fields) >= maxFields {
			return false
		}
		h = new(history)
		r.fields[f] = h
	}
	if h.times = append(h.times, now); len(h.times) > maxCount+1 {
		h.times = h.times[1:]
	}
	isOften := len(h.times) > maxCount && now.Sub(h.times[0]) <= window
	if !isOften || !h.reported.IsZero() && now.Sub(h.reported) < reportPeriod {
		return false
	}
	h.reported = now
	return true
}

// forgetOldLocked forgets the fields that were not set back within window.
func (r *Reporter) forgetOldLocked(now time.Time) {
	for f, h := range r.fields {
		if now.Sub(h.times[len(h.times)-1]) > window {
			delete(r.fields, f)
		}
	}
}
