package cache

import (
	"bytes"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// outcome is what the answer of a write says about the object.
type outcome struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace         string    `json:"namespace"`
		Name              string    `json:"name"`
		UID               types.UID `json:"uid"`
		ResourceVersion   string    `json:"resourceVersion"`
		DeletionTimestamp *string   `json:"deletionTimestamp"`
		Grace             int64     `json:"deletionGracePeriodSeconds"`
		Finalizers        []string  `json:"finalizers"`
	} `json:"metadata"`
	Spec    jsontext.Value `json:"spec"`
	Details struct {
		UID types.UID `json:"uid"`
	} `json:"details"`
}

// note takes in the outcome of a write that was begun at a time.
func (v *View) note(r *kube.Request, began uint64, response *kube.Response, err error) {
	if dryRun(r) || response != nil && response.Cached {
		return
	}
	c := v.cache
	if r.Verb == kube.VerbDeleteCollection {
		if err == nil || mayHaveHappened(err) {
			c.overlay.doubtScope(scopeOf(r))
		}
		return
	}
	k := keyOf(r.Ref())
	if k.name == "" && r.Subresource == "" { // of a create
		k.name = nameIn(r.Body)
	}
	if err != nil {
		switch {
		case k.name != "":
			if v.contradicts(r, k, err) {
				c.overlay.put(k, began, overlayEntry{kind: doubt})
				c.tidyKey(k)
			}
		case mayHaveHappened(err):
			// It may be there, under a name that the server has made.
			c.overlay.doubtScope(scopeOf(r))
		}
		return
	}
	var answer outcome
	if kube.Unmarshal(response.Body, &answer) != nil {
		answer = outcome{}
	}
	if k.name == "" {
		k.name = answer.Metadata.Name
	}
	if k.name == "" {
		c.overlay.doubtScope(scopeOf(r))
		return
	}
	e := c.entryOf(r, k, response, answer)
	if r.Verb == kube.VerbCreate && e.kind == value {
		// Only of a create the version is new for certain: what changes nothing is answered
		// with the version that there was.
		c.overlay.bound(scopeOf(r), began, e.version)
	}
	c.overlay.put(k, began, e)
	c.tidyKey(k)
}

// dryRun tells writes that store nothing. Deletes say so in their body.
func dryRun(r *kube.Request) bool {
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

func nameIn(object []byte) string {
	var named struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if kube.Unmarshal(object, &named) != nil {
		return ""
	}
	return named.Metadata.Name
}

// mayHaveHappened tells that a write may have been carried out, or a part of it, although
// it failed. An error that no server has answered with, and that does not say that nothing
// was sent, tells nothing.
func mayHaveHappened(err error) bool {
	e, ok := kube.AsError(err)
	return !ok || e.Unknown || e.Code >= 500 || e.Code == http.StatusConflict && !kube.IsAlreadyExists(err)
}

// contradicts tells whether after an error what is known of the object is not to be trusted:
// the write may have been carried out, or was refused because of a state that is not shown.
func (v *View) contradicts(r *kube.Request, k overlayKey, err error) bool {
	e, ok := kube.AsError(err)
	if !ok || e.Unknown {
		return true
	}
	refused := kube.IsInvalid(err) && (r.ContentType == kube.ContentJSONPatch || ofAnotherUID(e))
	conflict := kube.IsConflict(err) && !kube.IsApplyConflict(err)
	missing := kube.IsNotFound(err) && !kube.IsNoResource(err)
	if !refused && !conflict && !missing && !kube.IsAlreadyExists(err) {
		return false
	}
	shown, ok := v.shows(k, r.Resource)
	if !ok {
		return true
	}
	switch p := r.Preconditions; {
	case missing:
		return shown.present
	case kube.IsAlreadyExists(err):
		return !shown.present
	case p.UID != "" && shown.present && p.UID != shown.record.UID:
		return false // that it is another one is known
	case p.ResourceVersion != "" && shown.present && newer(shown.record.ResourceVersion, p.ResourceVersion):
		return false // that it has changed is known
	default:
		return true
	}
}

// ofAnotherUID tells the refusal of an apply to an object that was made anew: for most
// resources it is no conflict.
func ofAnotherUID(e *kube.Error) bool {
	if e.Answer.Details == nil {
		return false
	}
	for _, cause := range e.Answer.Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// entryOf reads the answer of a write that succeeded.
func (c *Cache) entryOf(r *kube.Request, k overlayKey, response *kube.Response, answer outcome) overlayEntry {
	m := answer.Metadata
	e := overlayEntry{kind: doubt, uid: m.UID, resource: r.Resource, form: r.Representation}
	switch {
	case r.Subresource == "scale" && comparableVersion(m.ResourceVersion):
		// It has the version of the object, though it is another kind.
		e.version = m.ResourceVersion
		return e
	case r.Subresource != "" && r.Subresource != "status":
		return e // the answer is not the object: an Eviction, a Binding
	case answer.Kind == "Status":
		// The answer of a delete, when nothing is left of the object.
		if r.Verb == kube.VerbDelete && answer.Details.UID != "" {
			e.kind, e.uid = tombstone, answer.Details.UID
			e.seen = addSighting(nil, sighting{uid: e.uid, version: c.versionOf(k, e.uid)})
		}
		return e
	case m.UID == "" || !comparableVersion(m.ResourceVersion):
		return e
	}
	e.seen = addSighting(nil, sighting{uid: m.UID, version: m.ResourceVersion})
	// An object in the answer may be gone all the same: the last finalizer was taken from
	// it, or it is of a kind whose deletion is answered with what there was.
	going := m.DeletionTimestamp != nil
	if (going || r.Verb == kube.VerbDelete) && !(going && answer.held(r)) {
		e.kind = tombstone
		return e
	}
	e.kind, e.version, e.object = value, m.ResourceVersion, bytes.Clone(response.Body)
	if c.onlyMetadata(r.Resource) {
		e.form = kube.MetadataOnly
		var err error
		if e.object, err = metadataOf(response.Body); err != nil {
			e.object = nil
		}
	}
	return e
}

// held tells whether something keeps an object that is being deleted.
func (a outcome) held(r *kube.Request) bool {
	if len(a.Metadata.Finalizers) > 0 || a.Metadata.Grace > 0 {
		return true
	}
	if r.Resource.Group != "" || r.Resource.Plural != "namespaces" {
		return false
	}
	// Namespaces have another place for it.
	var spec struct {
		Finalizers []string `json:"finalizers"`
	}
	return kube.Unmarshal(a.Spec, &spec) == nil && len(spec.Finalizers) > 0
}

// onlyMetadata tells resources whose contents are not to be kept: Secrets, unless a stream
// was opened that keeps them.
func (c *Cache) onlyMetadata(r kube.Resource) bool {
	return r.IsSecret() && !slices.ContainsFunc(c.snapshot(), func(s *stream) bool {
		return sameResource(s.handle.Resource, r) && s.handle.Representation == kube.Full
	})
}

// metadataOf is an object without its content.
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
