package cache

import (
	"context"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// liveHandler reads from the server what stores cannot answer, and records the answers in the overlay.
type liveHandler struct {
	view *View
	next kube.Handler
}

// get reads an object whose state is uncertain, and records the answer.
func (l *liveHandler) get(ctx context.Context, r *kube.Request, k overlay.Key, store *Store) (*kube.Response, error) {
	o := l.view.overlay
	// The object that the store shows before the read is gone if the read does not find it. An
	// object that the store shows afterwards may have been created since.
	var observed []ident.Version
	if object, ok := store.Get(k.In()); ok && object.UID != "" {
		observed = []ident.Version{o.observedVersion(k, object.UID)}
	}
	before := o.streams.storeStates(k)
	began := o.Begin()
	response, err := l.next.Do(ctx, r)
	switch {
	case err == nil:
		var answer ident.Answer
		if kube.Unmarshal(response.Body, &answer) != nil || !ident.IsComparable(answer.Metadata.ResourceVersion) {
			break // the next read asks again
		}
		checkAnswer(before, answer.Metadata)
		if e := o.valueOf(r, k, answer, response.Body); o.Settle(k, began, e) {
			o.expect(k, e)
		}
	case kube.IsNotFound(err):
		o.Settle(k, began, overlay.Entry{Kind: overlay.Tombstone, Observed: observed})
	default:
		return nil, err
	}
	o.dropObserved(k)
	return response, err
}

// list reads a list. Its version may settle what is in doubt.
func (l *liveHandler) list(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	o := l.view.overlay
	began := o.Begin()
	response, err := l.next.Do(ctx, r)
	if err == nil && o.HasUnbounded() {
		o.RecordVersion(overlay.KeyOf(r.Ref()).Collection, began, versionOfList(response.Body))
	}
	return response, err
}

// resolveCollectionDoubts reads a version after all effects for each doubt about the request's collections that
// has none. It reports whether the store has reached all of these versions.
func (l *liveHandler) resolveCollectionDoubts(ctx context.Context, r *kube.Request, store *Store) (isCertain bool) {
	o, isCertain := l.view.overlay, true
	for in, d := range o.Doubts(overlay.KeyOf(r.Ref()).Collection) {
		isObserved := d.IsObservedBy(store.reached())
		if !isObserved && d.NeedsVersion() {
			// A list that begins now has a version after all effects.
			if version, err := l.currentVersion(ctx, r, in.Namespace); err == nil {
				d = o.BoundDoubt(in, d, version)
				isObserved = d.IsObservedBy(store.reached())
			}
		}
		switch {
		case !isObserved:
			isCertain = false
		case !o.isDoubtNeeded(in, d):
			o.DropDoubt(in, d)
		}
	}
	return isCertain
}

// currentVersion returns the current resource version of a collection. It makes a request.
func (l *liveHandler) currentVersion(ctx context.Context, r *kube.Request, namespace string) (string, error) {
	response, err := l.next.Do(ctx, &kube.Request{
		Cluster: r.Cluster, Verb: kube.VerbList, Resource: r.Resource, Namespace: namespace,
		Query: url.Values{"limit": {"1"}}, Representation: kube.MetadataOnly,
	})
	if err != nil {
		return "", err
	}
	return versionOfList(response.Body), nil
}

// versionOfList returns the resource version of a list, or the empty string if the list cannot be read.
func versionOfList(list []byte) string {
	var answer struct {
		Metadata metav1.ListMeta `json:"metadata"`
	}
	if kube.Unmarshal(list, &answer) != nil {
		return ""
	}
	return answer.Metadata.ResourceVersion
}
