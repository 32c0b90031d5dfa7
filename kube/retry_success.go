package kube

import (
	"context"
	"maps"
	"net/http"
	"reflect"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// earlierSuccess finds out whether an earlier attempt of a write was carried out, when the server refuses
// the repetition.
//
// A replace names the resource version 5. The connection breaks, and the repetition is refused with a
// conflict. If the live object, now of version 6, has the content of the replace, the first attempt was
// carried out. Otherwise somebody else has changed the object.
type earlierSuccess struct{ next wire.Handler }

// answer returns the answer of a write whose repetition was refused with e. It reports false unless the
// refusal only shows that an earlier attempt was carried out.
func (h earlierSuccess) answer(ctx context.Context, r *wire.Request, e *wire.Error) (*wire.Response, bool) {
	switch r.Verb {
	case wire.VerbDelete:
		// The object of that uid is gone, or is being deleted.
		if IsNotFound(e) || IsUIDConflict(e) || IsConflict(e) && h.isDeleted(ctx, r) {
			return &wire.Response{
				Code: http.StatusOK, Body: []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`),
			}, true
		}
	case wire.VerbUpdate:
		if IsNotFound(e) && removesObject(r.Body) {
			return &wire.Response{Code: http.StatusOK, Body: r.Body}, true
		}
		if !IsConflict(e) {
			return nil, false
		}
		live, err := h.next.Do(ctx, readOf(r))
		if err == nil && r.Representation == wire.Full && isSameObject(live.Body, r.Body) {
			return live, true
		}
	}
	return nil, false
}

// readOf returns the request that reads the object of the write r.
func readOf(r *wire.Request) *wire.Request {
	return &wire.Request{
		Cluster: r.Cluster, Verb: wire.VerbGet, Resource: r.Resource, Namespace: r.Namespace,
		Name: r.Name, Subresource: r.Subresource, Representation: r.Representation,
	}
}

// isDeleted reports whether the object of the delete r is gone or is being deleted. An example is a
// Namespace, which refuses a second delete while it is being deleted. It reports false for a delete with a
// resourceVersion, because somebody else may have deleted the object first.
func (h earlierSuccess) isDeleted(ctx context.Context, r *wire.Request) bool {
	if r.Preconditions.ResourceVersion != "" {
		return false
	}
	live, err := h.next.Do(ctx, readOf(r))
	if err != nil {
		return IsNotFound(err)
	}
	var object ident.Answer
	return Unmarshal(live.Body, &object) == nil &&
		(object.Metadata.DeletionTimestamp != nil || object.Metadata.UID != r.Preconditions.UID)
}

// removesObject reports whether body is an object that is being deleted and has no finalizer any
// more: storing it removes the object.
func removesObject(body []byte) bool {
	var object ident.Answer
	return Unmarshal(body, &object) == nil &&
		object.Metadata.DeletionTimestamp != nil && len(object.Metadata.Finalizers) == 0
}

// isSameObject reports whether two encodings are equal, apart from the fields that the server sets in
// stored objects. A null equals a missing member. In doubt it reports false: {} does not equal a missing
// member, because they differ in a label selector.
func isSameObject(live, wanted []byte) bool {
	var l, w map[string]any
	if Unmarshal(live, &l) != nil || Unmarshal(wanted, &w) != nil {
		return false
	}
	for _, o := range []map[string]any{l, w} {
		if metadata, ok := o["metadata"].(map[string]any); ok {
			for _, serverSet := range []string{"resourceVersion", "generation", "managedFields", "creationTimestamp"} {
				delete(metadata, serverSet)
			}
		}
		if status, ok := o["status"].(map[string]any); ok && len(status) == 0 {
			delete(o, "status") // a Go struct that was never set encodes as {}
		}
		dropNulls(o)
	}
	return reflect.DeepEqual(l, w)
}

// dropNulls removes the members of v that are null, at any depth.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, member any) bool {
			dropNulls(member)
			return member == nil
		})
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}
