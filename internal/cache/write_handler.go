package cache

import (
	"context"
	"net/http"

	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// writeHandler sends the writes of a program, and records their outcome in the overlay.
type writeHandler struct {
	view *View
	next wire.Handler
}

// write sends a write.
func (w *writeHandler) write(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	o := w.view.overlay
	before := o.streams.shownStates(overlay.KeyOf(r.Ref()))
	began := o.Begin()
	response, err := w.next.Do(ctx, r)
	if !isDryRun(r) && (response == nil || !response.Cached) {
		if err != nil {
			w.recordError(r, began, err)
		} else {
			w.recordAnswer(r, began, before, response.Body)
		}
	}
	o.sweep()
	return response, err
}

// recordError records the failure of a write that began at a tick.
func (w *writeHandler) recordError(r *wire.Request, began overlay.Tick, err error) {
	o, k := w.view.overlay, keyOfWrite(r)
	switch {
	case r.Verb != wire.VerbDeleteCollection && k.Name != "":
		if w.mayMisleadReads(r, k, err) {
			o.Record(k, began, overlay.Entry{Kind: overlay.UnknownState})
			o.dropObserved(k)
		}
	case mayHaveHappenedInPart(err):
		// Objects may have been deleted, or one may exist under a name that the server has made.
		o.RecordCollectionEffect(k.Collection)
	}
}

// recordAnswer records the answer to a write that began at a tick. before is what the stores showed at that time.
func (w *writeHandler) recordAnswer(r *wire.Request, began overlay.Tick, before []shownByStream, body []byte) {
	o, k := w.view.overlay, keyOfWrite(r)
	if r.Verb == wire.VerbDeleteCollection {
		o.RecordCollectionEffect(k.Collection)
		return
	}
	var answer ident.Answer
	if kube.Unmarshal(body, &answer) != nil {
		answer = ident.Answer{}
	}
	if k.Name == "" {
		k.Name = answer.Metadata.Name
	}
	if k.Name == "" {
		o.RecordCollectionEffect(k.Collection)
		return
	}
	if m := answer.Metadata; m.DeletionTimestamp == nil && r.Verb != wire.VerbDelete {
		checkAnswer(before, k, m) // the last version of what is gone can be old
	}
	e := o.overlayEntryOf(r, k, answer, body)
	if r.Verb == wire.VerbCreate && e.Kind == overlay.Value {
		// Only the version of a create is new for certain: a write that changes nothing is answered with the
		// old version of the object.
		o.RecordVersion(k.Collection, began, e.Version)
	}
	if o.Record(k, began, e) {
		o.expect(k, e)
	}
	o.dropObserved(k)
}

// keyOfWrite returns the key of the object that r writes. It has no name if the request has none.
func keyOfWrite(r *wire.Request) overlay.Key {
	k := overlay.KeyOf(r.Ref())
	if k.Name == "" && r.Subresource == "" && r.Verb != wire.VerbDeleteCollection {
		k.Name = r.ObjectName()
	}
	return k
}

// isDryRun reports whether a write stores nothing. A delete has the option in its body.
func isDryRun(r *wire.Request) bool {
	if r.Query.Get("dryRun") != "" {
		return true
	}
	if r.Verb != wire.VerbDelete && r.Verb != wire.VerbDeleteCollection || len(r.Body) == 0 {
		return false
	}
	var options struct {
		DryRun []string `json:"dryRun"`
	}
	return kube.Unmarshal(r.Body, &options) == nil && len(options.DryRun) > 0
}

// mayHaveHappenedInPart reports whether a write may have been carried out, or a part of it, although it failed. It
// returns true more often than [kube.IsUnknown]: a deletion of a collection that fails with a conflict or an error of
// the server may have deleted some of the objects. An error that is not of the API is no proof that nothing was sent.
func mayHaveHappenedInPart(err error) bool {
	e, ok := kube.AsError(err)
	return !ok || e.Unknown || e.Code >= 500 || e.Code == http.StatusConflict && !kube.IsAlreadyExists(err)
}

// mayMisleadReads reports whether reads may show a wrong state of the object after err: the write
// may have been carried out, or was refused because of a state that reads do not show.
func (w *writeHandler) mayMisleadReads(r *wire.Request, k overlay.Key, err error) bool {
	e, ok := kube.AsError(err)
	if !ok || e.Unknown {
		return true
	}
	isRefused := kube.IsInvalid(err) && (r.ContentType == wire.ContentJSONPatch || kube.IsUIDConflict(e))
	isConflict := kube.IsConflict(err) && !kube.IsApplyConflict(err)
	isMissing := kube.IsNotFound(err)
	if !isRefused && !isConflict && !isMissing && !kube.IsAlreadyExists(err) {
		return false
	}
	record, isPresent, isCertain := w.view.lookupMetadata(k, r.Resource)
	if !isCertain {
		return true
	}
	switch p := r.Preconditions; {
	case isMissing:
		return isPresent
	case kube.IsAlreadyExists(err):
		return !isPresent
	case p.UID != "" && isPresent && p.UID != record.UID:
		return false // reads show that it is another object
	case p.ResourceVersion != "" && isPresent && ident.IsNewer(record.ResourceVersion, p.ResourceVersion):
		return false // reads show that the object has changed
	default:
		return true
	}
}
