package cache

import (
	"bytes"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// writeAnswer holds the parts of the answer of a write that describe the object.
type writeAnswer struct {
	Kind     string         `json:"kind"`
	Metadata answerMetadata `json:"metadata"`
	Spec     jsontext.Value `json:"spec"`
	Details  struct {
		UID types.UID `json:"uid"`
	} `json:"details"`
}

// answerMetadata is metadata of an object that a request was answered with.
type answerMetadata struct {
	Namespace         string         `json:"namespace"`
	Name              string         `json:"name"`
	UID               types.UID      `json:"uid"`
	ResourceVersion   string         `json:"resourceVersion"`
	Labels            jsontext.Value `json:"labels"`
	DeletionTimestamp *string        `json:"deletionTimestamp"`
	Grace             int64          `json:"deletionGracePeriodSeconds"`
	Finalizers        []string       `json:"finalizers"`
}

// recordWrite records the outcome of a write that began at a tick, when stores showed these versions
// of the object.
func (v *View) recordWrite(r *kube.Request, began overlay.Tick, shown []shownVersion, response *kube.Response, err error) {
	if isDryRun(r) || response != nil && response.Cached {
		return
	}
	o := v.cache.overlay
	k := overlay.KeyOf(r.Ref())
	if r.Verb == kube.VerbDeleteCollection {
		if err == nil || mayHaveHappened(err) {
			o.DoubtCollection(k.Collection)
		}
		return
	}
	if k.Name == "" && r.Subresource == "" {
		k.Name = r.ObjectName()
	}
	if err != nil {
		switch {
		case k.Name != "":
			if v.contradicts(r, k, err) {
				o.Record(k, began, overlay.Entry{Kind: overlay.Doubt})
				v.cache.dropObserved(k)
			}
		case mayHaveHappened(err):
			// The object may exist, under a name that the server has made.
			o.DoubtCollection(k.Collection)
		}
		return
	}
	var answer writeAnswer
	if kube.Unmarshal(response.Body, &answer) != nil {
		answer = writeAnswer{}
	}
	if k.Name == "" {
		k.Name = answer.Metadata.Name
	}
	if k.Name == "" {
		o.DoubtCollection(k.Collection)
		return
	}
	if m := answer.Metadata; m.DeletionTimestamp == nil && r.Verb != kube.VerbDelete {
		checkAnswer(shown, m) // the last version of what is gone can be old
	}
	e := v.cache.entryOf(r, k, answer, response.Body)
	if r.Verb == kube.VerbCreate && e.Kind == overlay.Value {
		// Only the version of a create is new for certain: a write that changes nothing is
		// answered with the version that the object had.
		o.RecordVersion(k.Collection, began, e.Version)
	}
	if o.Record(k, began, e) {
		v.cache.expect(k, e)
	}
	v.cache.dropObserved(k)
}

// isDryRun reports whether a write stores nothing. A delete has the option in its body.
func isDryRun(r *kube.Request) bool {
	if r.Query.Get("dryRun") != "" {
		return true
	}
	if r.Verb != kube.VerbDelete && r.Verb != kube.VerbDeleteCollection || len(r.Body) == 0 {
		return false
	}
	var options struct {
		DryRun []string `json:"dryRun"`
	}
	return kube.Unmarshal(r.Body, &options) == nil && len(options.DryRun) > 0
}

// mayHaveHappened reports whether a write may have been carried out, or a part of it, although
// it failed. An error that is not a server's answer leaves that open, unless it reports that
// nothing was sent.
func mayHaveHappened(err error) bool {
	e, ok := kube.AsError(err)
	return !ok || e.Unknown || e.Code >= 500 || e.Code == http.StatusConflict && !kube.IsAlreadyExists(err)
}

// contradicts reports whether reads may show a wrong state of the object after err: the write
// may have been carried out, or was refused because of a state that reads do not show.
func (v *View) contradicts(r *kube.Request, k overlay.Key, err error) bool {
	e, ok := kube.AsError(err)
	if !ok || e.Unknown {
		return true
	}
	refused := kube.IsInvalid(err) && (r.ContentType == kube.ContentJSONPatch || kube.IsUIDConflict(e))
	conflict := kube.IsConflict(err) && !kube.IsApplyConflict(err)
	missing := kube.IsNotFound(err)
	if !refused && !conflict && !missing && !kube.IsAlreadyExists(err) {
		return false
	}
	shown, present, ok := v.lookupMetadata(k, r.Resource)
	if !ok {
		return true
	}
	switch p := r.Preconditions; {
	case missing:
		return present
	case kube.IsAlreadyExists(err):
		return !present
	case p.UID != "" && present && p.UID != shown.UID:
		return false // reads show that it is another object
	case p.ResourceVersion != "" && present && ident.IsNewer(shown.ResourceVersion, p.ResourceVersion):
		return false // reads show that the object has changed
	default:
		return true
	}
}

// entryOf returns the overlay entry for the answer of a write that succeeded.
func (c *Cache) entryOf(r *kube.Request, k overlay.Key, answer writeAnswer, body []byte) overlay.Entry {
	m := answer.Metadata
	doubt := overlay.Entry{Kind: overlay.Doubt, UID: m.UID}
	switch {
	case r.Subresource == "scale" && ident.IsComparable(m.ResourceVersion):
		// The answer has the version of the object, though it is another kind.
		doubt.Version = m.ResourceVersion
		return doubt
	case r.Subresource != "" && r.Subresource != "status":
		return doubt // the answer is not the object but an Eviction or a Binding
	case answer.Kind == "Status":
		// Nothing is left of an object whose deletion is answered so.
		if r.Verb != kube.VerbDelete || answer.Details.UID == "" {
			return doubt
		}
		uid := answer.Details.UID
		return overlay.Entry{Kind: overlay.Tombstone, UID: uid,
			Observed: overlay.AddObserved(nil, overlay.ObservedVersion{UID: uid, Version: c.observedVersion(k, uid)})}
	case m.UID == "" || !ident.IsComparable(m.ResourceVersion):
		return doubt
	}
	// An object in the answer may be gone all the same: its last finalizer was removed, or its
	// deletion is answered with the object that there was.
	deleting := m.DeletionTimestamp != nil
	if (deleting || r.Verb == kube.VerbDelete) && !(deleting && answer.isHeld(r)) {
		return overlay.Entry{Kind: overlay.Tombstone, UID: m.UID,
			Observed: overlay.AddObserved(nil, overlay.ObservedVersion{UID: m.UID, Version: m.ResourceVersion})}
	}
	return c.valueOf(r, k, answer, body)
}

// valueOf returns the entry of an object that the server answered with. Its content is limited
// to what reads can need.
func (c *Cache) valueOf(r *kube.Request, k overlay.Key, answer writeAnswer, body []byte) overlay.Entry {
	m := answer.Metadata
	e := overlay.Entry{
		Kind: overlay.Value, UID: m.UID, Version: m.ResourceVersion, Labels: string(m.Labels),
		Resource: r.Resource, Form: formOfAnswer(r),
		Observed: overlay.AddObserved(nil, overlay.ObservedVersion{UID: m.UID, Version: m.ResourceVersion}),
	}
	if e.Form == kube.Full && !c.servesContent(k, r.Resource) {
		e.Form = kube.MetadataOnly
		if object, err := metadataOf(body); err == nil {
			e.Object = object
		}
		return e
	}
	e.Object = bytes.Clone(body)
	return e
}

// formOfAnswer returns the form in which a server answers r: the cache reduces objects to a
// projection, not the server.
func formOfAnswer(r *kube.Request) kube.Representation {
	if r.Representation == kube.MetadataOnly {
		return kube.MetadataOnly
	}
	return kube.Full
}

// servesContent reports whether a store can serve reads of more than the metadata of an object.
// Otherwise its whole content would be kept for nothing. The content of a Secret is not kept for a
// projection, which may have left the secret out.
func (c *Cache) servesContent(k overlay.Key, r kube.Resource) bool {
	return slices.ContainsFunc(c.snapshot(), func(s *stream) bool {
		return s.mayHold(k) && isSameResource(s.id.Resource, r) &&
			(s.id.Representation == kube.Full || s.fields != nil && !r.IsSecret())
	})
}

// isHeld reports whether finalizers or a grace period keep an object that is being deleted.
func (a writeAnswer) isHeld(r *kube.Request) bool {
	if len(a.Metadata.Finalizers) > 0 || a.Metadata.Grace > 0 {
		return true
	}
	if r.Resource.Group != "" || r.Resource.Plural != "namespaces" {
		return false
	}
	// Namespaces have another place for finalizers.
	var spec struct {
		Finalizers []string `json:"finalizers"`
	}
	return kube.Unmarshal(a.Spec, &spec) == nil && len(spec.Finalizers) > 0
}

// metadataOf returns an object without its content.
func metadataOf(object []byte) ([]byte, error) {
	var o struct {
		Kind       string         `json:"kind"`
		APIVersion string         `json:"apiVersion"`
		Metadata   jsontext.Value `json:"metadata"`
	}
	if err := kube.Unmarshal(object, &o); err != nil {
		return nil, err
	}
	o.Kind, o.APIVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	return kube.Marshal(o)
}
