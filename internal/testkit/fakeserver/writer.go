package fakeserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/merge"

	"github.com/yare-go/yare/kube/wire"
)

// writer carries out requests that write. The lock of the server guards it.
type writer struct {
	store     *store
	ownership *fieldOwnership
	// uids counts the uids that were given out. A restoration does not reset it.
	uids int
}

func newWriter(s *store) *writer { return &writer{store: s, ownership: newFieldOwnership()} }

// liveObject returns the object that r names.
func (w *writer) liveObject(r *wire.Request) (*object, error) {
	if r.Subresource != "" && r.Subresource != "status" {
		return nil, Refusal(r, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	if o := w.store.objects[idOf(r)]; o != nil {
		return o, nil
	}
	return nil, refusalOf(r, http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("%s %q not found", r.Resource, r.Name))
}

func (w *writer) create(r *wire.Request) (*wire.Response, error) {
	content, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	metadata := metadataOf(content)
	if generate := textOf(metadata, "generateName"); textOf(metadata, "name") == "" && generate != "" {
		metadata["name"] = generate + strconv.Itoa(w.uids+1)
	}
	id := idOf(r)
	if id.name = textOf(metadata, "name"); id.name == "" {
		return nil, invalid(r, metav1.CauseTypeFieldValueRequired, "metadata.name")
	}
	if w.store.objects[id] != nil {
		e := Refusal(r, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		e.Answer.Details.Name = id.name
		return nil, e
	}
	if metadata["resourceVersion"] != nil {
		return nil, serverError(r, "resourceVersion should not be set on objects to be created")
	}
	delete(metadata, "managedFields")
	delete(content, "status")
	if err := w.ownership.recordUpdate(managerOf(r), nil, content); err != nil {
		return nil, badRequest(r, err.Error())
	}
	return w.createObject(r, id, content)
}

// createObject stores an object that does not exist yet. The owners of its fields are recorded in content.
func (w *writer) createObject(r *wire.Request, id objectID, content map[string]any) (*wire.Response, error) {
	metadata := metadataOf(content)
	content["apiVersion"], content["kind"] = r.Resource.GroupVersion().String(), r.Resource.Kind
	metadata["name"] = id.name
	if id.namespace != "" {
		metadata["namespace"] = id.namespace
	}
	for _, name := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "generation"} {
		delete(metadata, name)
	}
	metadata["creationTimestamp"] = now()
	if hasGeneration(r.Resource) {
		metadata["generation"] = int64(1)
	}
	w.uids++
	metadata["uid"] = fmt.Sprintf("uid-%d", w.uids)
	if isDryRun(r) {
		o := &object{id: id, content: content, text: encode(content)}
		return &wire.Response{Code: http.StatusCreated, Body: o.bytes(r.Representation)}, nil
	}
	response := answer(w.store.putObject(id, content), r)
	response.Code = http.StatusCreated
	return response, nil
}

// storeObject stores an object as if somebody had written it, unless the server would refuse the change.
func (w *writer) storeObject(r wire.Resource, id objectID, content map[string]any) {
	request := &wire.Request{Verb: wire.VerbUpdate, Resource: r, Namespace: id.namespace, Name: id.name}
	if live := w.store.objects[id]; live != nil {
		delete(metadataOf(content), "resourceVersion")
		_, _ = w.replaceObject(request, live, content)
	} else if _, err := w.createObject(request, id, content); err != nil {
		panic(err) // createObject refuses nothing
	}
}

// hasGeneration reports whether the server counts generations of a kind. The server counts
// them for few kinds of the core group.
func hasGeneration(r wire.Resource) bool {
	return r.Group != "" && r.Group != "events.k8s.io" || r.Plural == "pods" || r.Plural == "replicationcontrollers"
}

func (w *writer) update(r *wire.Request) (*wire.Response, error) {
	live, err := w.liveObject(r)
	if err != nil {
		return nil, err
	}
	content, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	if uid := metadataOf(content)["uid"]; uid != nil && uid != metadataOf(live.content)["uid"] {
		return nil, Refusal(r, http.StatusConflict, metav1.StatusReasonConflict)
	}
	return w.replaceObject(r, live, content)
}

func (w *writer) patch(r *wire.Request) (*wire.Response, error) {
	if r.ContentType == wire.ContentApply {
		return w.apply(r)
	}
	live, err := w.liveObject(r)
	if err != nil {
		return nil, err
	}
	switch r.ContentType {
	case wire.ContentJSONPatch, wire.ContentMergePatch, wire.ContentStrategicPatch:
	default:
		return nil, Refusal(r, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType)
	}
	content, err := patched(r, live)
	if err != nil {
		return nil, err
	}
	if metadataOf(content)["uid"] != metadataOf(live.content)["uid"] {
		return nil, invalid(r, metav1.CauseTypeFieldValueInvalid, "metadata.uid")
	}
	return w.replaceObject(r, live, content)
}

// apply carries out a server-side apply.
func (w *writer) apply(r *wire.Request) (*wire.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	if r.Query.Get("fieldManager") == "" {
		return nil, invalidOptions(r, "PatchOptions", metav1.CauseTypeFieldValueRequired, "fieldManager")
	}
	metadata := metadataOf(body)
	if metadata["managedFields"] != nil {
		return nil, badRequest(r, "metadata.managedFields must be nil")
	}
	if textOf(metadata, "name") != r.Name {
		return nil, badRequest(r, fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)",
			textOf(metadata, "name"), r.Name))
	}
	var former map[string]any
	live := w.store.objects[idOf(r)]
	switch {
	case live == nil && r.Subresource != "":
		return nil, Refusal(r, http.StatusNotFound, metav1.StatusReasonNotFound)
	case live == nil && metadata["uid"] != nil:
		return nil, refusalOf(r, http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("uid mismatch: the provided object specified uid %s, and no existing object was found", metadata["uid"]))
	case live != nil:
		former = live.content
		if uid := metadata["uid"]; uid != nil && r.Subresource == "" && uid != metadataOf(former)["uid"] {
			return nil, invalid(r, metav1.CauseTypeFieldValueInvalid, "metadata.uid")
		}
	}
	content, err := w.ownership.apply(managerOf(r), former, body, r.Query.Get("force") == "true")
	if conflicts, ok := errors.AsType[merge.Conflicts](err); ok {
		return nil, applyConflict(r, conflicts)
	} else if err != nil {
		return nil, badRequest(r, err.Error())
	}
	if live == nil {
		return w.createObject(r, idOf(r), content) // a server ignores the resourceVersion then
	}
	if v := metadata["resourceVersion"]; v != nil {
		metadataOf(content)["resourceVersion"] = v
	}
	return w.replaceObject(r, live, content)
}

// replaceObject stores content in place of live, as far as the request may change it. The owners of the fields are
// recorded in content after an apply. After another request its manager owns what it changed.
func (w *writer) replaceObject(r *wire.Request, live *object, content map[string]any) (*wire.Response, error) {
	metadata, former := metadataOf(content), metadataOf(live.content)
	if v := textOf(metadata, "resourceVersion"); v != "" && v != textOf(former, "resourceVersion") {
		return nil, refusalOf(r, http.StatusConflict, metav1.StatusReasonConflict,
			"the object has been modified; please apply your changes to the latest version and try again")
	}
	if r.Subresource == "status" {
		status, has := content["status"]
		managed := metadata["managedFields"]
		content = clone(live.content)
		metadata = metadataOf(content)
		if delete(content, "status"); has {
			content["status"] = status
		}
		if delete(metadata, "managedFields"); managed != nil {
			metadata["managedFields"] = managed
		}
	} else if status, has := live.content["status"]; has {
		content["status"] = clone(status)
	} else {
		delete(content, "status")
	}
	for _, name := range []string{
		"uid", "name", "namespace", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
		"resourceVersion",
	} {
		if delete(metadata, name); former[name] != nil {
			metadata[name] = former[name]
		}
	}
	content["apiVersion"], content["kind"] = live.content["apiVersion"], live.content["kind"]
	// An ObjectMeta leaves empty lists out.
	for _, name := range []string{"finalizers", "ownerReferences"} {
		if len(listOf(metadata, name)) == 0 {
			delete(metadata, name)
		}
	}
	if former["deletionTimestamp"] != nil {
		for _, f := range listOf(metadata, "finalizers") {
			if !slices.Contains(listOf(former, "finalizers"), f) {
				return nil, invalid(r, metav1.CauseTypeForbidden, "metadata.finalizers")
			}
		}
	}
	if r.ContentType != wire.ContentApply {
		if err := w.ownership.recordUpdate(managerOf(r), live.content, content); err != nil {
			return nil, badRequest(r, err.Error())
		}
	}
	if former["deletionTimestamp"] != nil && len(listOf(metadata, "finalizers")) == 0 {
		last := newObject(live.id, live.version, content)
		if !isDryRun(r) {
			w.store.removeObject(live, nil)
		}
		return answer(last, r), nil
	}
	if reflect.DeepEqual(content, live.content) {
		return answer(live, r), nil
	}
	if former["generation"] != nil && !reflect.DeepEqual(withoutStatus(live.content), withoutStatus(content)) {
		metadata["generation"] = former["generation"].(int64) + 1
	}
	if isDryRun(r) {
		return answer(newObject(live.id, live.version, content), r), nil
	}
	return answer(w.store.putObject(live.id, content), r), nil
}

// withoutStatus returns the part of an object that counts for the generation.
func withoutStatus(content map[string]any) map[string]any {
	rest := make(map[string]any, len(content))
	for k, v := range content {
		if k != "metadata" && k != "status" {
			rest[k] = v
		}
	}
	return rest
}

func (w *writer) delete(r *wire.Request) (*wire.Response, error) {
	live, err := w.liveObject(r)
	if err != nil {
		return nil, err
	}
	var o metav1.DeleteOptions
	if len(r.Body) > 0 {
		if err := json.Unmarshal(r.Body, &o); err != nil {
			return nil, badRequest(r, err.Error())
		}
	}
	metadata := metadataOf(live.content)
	if p := o.Preconditions; p != nil {
		if p.UID != nil && string(*p.UID) != metadata["uid"] {
			return nil, failedPrecondition(r,
				fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", *p.UID, metadata["uid"]))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != metadata["resourceVersion"] {
			return nil, failedPrecondition(r,
				fmt.Sprintf("Precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object meta: %s",
					*p.ResourceVersion, metadata["resourceVersion"]))
		}
	}
	if gone := w.deleteObject(live, len(o.DryRun) > 0 || isDryRun(r)); gone != nil {
		return answer(gone, r), nil
	}
	return &wire.Response{Code: http.StatusOK, Body: encode(map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Success", "metadata": map[string]any{},
		"details": map[string]any{
			"name": live.id.name, "group": r.Resource.Group, "kind": r.Resource.Plural, "uid": metadata["uid"],
		},
	})}, nil
}

// failedPrecondition returns the answer to a delete of another object or version. The server names
// the kind and not the resource then.
func failedPrecondition(r *wire.Request, message string) *wire.Error {
	e := refusalOf(r, http.StatusConflict, metav1.StatusReasonConflict, message)
	e.Answer.Details.Kind = r.Resource.Kind
	return e
}

// deleteObject deletes an object. It returns the object as it is now if finalizers keep it.
func (w *writer) deleteObject(live *object, dry bool) *object {
	metadata := metadataOf(live.content)
	switch {
	case len(listOf(metadata, "finalizers")) == 0:
		if !dry {
			w.store.removeObject(live, nil)
		}
		return nil
	case metadata["deletionTimestamp"] != nil:
		return live
	}
	content := clone(live.content)
	metadata = metadataOf(content)
	metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = now(), int64(0)
	if generation, ok := metadata["generation"].(int64); ok {
		metadata["generation"] = generation + 1
	}
	if dry {
		return newObject(live.id, live.version, content)
	}
	return w.store.putObject(live.id, content)
}

func (w *writer) deleteCollection(r *wire.Request) (*wire.Response, error) {
	selected, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	var items []any
	for _, o := range w.store.sorted() {
		if selected.matches(o) {
			w.deleteObject(o, isDryRun(r))
			items = append(items, o.content)
		}
	}
	return &wire.Response{Code: http.StatusOK, Body: encode(map[string]any{
		"apiVersion": r.Resource.GroupVersion().String(), "kind": r.Resource.Kind + "List",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(w.store.version)}, "items": items,
	})}, nil
}

// collectGarbage deletes every object whose owners are all gone. It goes on until no such object is left, and
// returns the number of deleted objects.
func (w *writer) collectGarbage() int {
	deleted := 0
	for {
		uids := make(map[any]bool, len(w.store.objects))
		for _, o := range w.store.objects {
			uids[metadataOf(o.content)["uid"]] = true
		}
		before := deleted
		for _, o := range w.store.sorted() {
			owners := listOf(metadataOf(o.content), "ownerReferences")
			exists := func(owner any) bool { return uids[owner.(map[string]any)["uid"]] }
			if len(owners) > 0 && !slices.ContainsFunc(owners, exists) && metadataOf(o.content)["deletionTimestamp"] == nil {
				w.deleteObject(o, false)
				deleted++
			}
		}
		if deleted == before {
			return deleted
		}
	}
}
