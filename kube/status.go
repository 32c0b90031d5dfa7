package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// statusAttempts bounds how often the apply of a status is sent.
const statusAttempts = 5

// ApplyStatus declares the status of obj, and nothing else of it. An empty status removes the
// fields that this manager applied before.
//
// The object must have been read. Its uid and its resourceVersion are preconditions, so that
// ApplyStatus overwrites neither the status of an object that was deleted and made anew, nor a
// status that somebody else has written since. If only other parts of the object have changed,
// the status is written all the same: while the object has the uid and the generation of obj, and
// the fields of this manager in the status have not changed, ApplyStatus reads the live version
// and repeats the write, at most four times. Otherwise the conflict is returned: see
// [IsConflict].
//
// After a success obj has the managedFields of the answer. If nothing but the status has changed
// since obj was read, obj also has the resourceVersion of the answer, so that further writes of obj
// do not conflict with this one. A dry run does not change obj. obj must not be used by another
// goroutine meanwhile.
func (c *Client) ApplyStatus(ctx context.Context, obj Object, options ...ApplyOption) error {
	t, err := typeOfLive(VerbPatch, obj)
	if err != nil {
		return err
	}
	a := newResourceView(c, t.Resource, obj.GetNamespace(), t.Representation, t.HasStatus(), nil)
	a.subresource = "status"
	switch err := a.requireName(VerbPatch, obj.GetName()); {
	case !t.HasStatus():
		return fmt.Errorf("apply the status of %s: %s has none", t.Resource, TypeName(t.Go))
	case err != nil:
		return err
	case obj.GetUID() == "":
		return fmt.Errorf("apply the status of %s %s: it has no uid: read the object first, or use what Apply returned",
			t.Resource, quoted(obj.GetNamespace(), obj.GetName()))
	}
	_, o := a.applyQuery(options)
	version := obj.GetResourceVersion()
	for attempt := 1; ; attempt++ {
		r, err := a.applyStatusRequest(obj, version, options)
		if err != nil {
			return err
		}
		response, err := c.Do(ctx, r)
		if err == nil {
			if !o.dryRun && !response.Cached {
				adoptStatus(obj, response.Body, attempt == 1)
			}
			return nil
		}
		if attempt == statusAttempts || version == "" || !IsConflict(err) || IsApplyConflict(err) {
			return err
		}
		live, ok := a.readLive(ctx, obj.GetName())
		if !ok || !mayRepeatStatus(obj, live, o.manager) {
			return err
		}
		version = live.ResourceVersion
	}
}

// writtenMetadata is the metadata that a status may be written by.
type writtenMetadata struct {
	UID             types.UID                   `json:"uid"`
	ResourceVersion string                      `json:"resourceVersion"`
	Generation      int64                       `json:"generation"`
	ManagedFields   []metav1.ManagedFieldsEntry `json:"managedFields"`
}

// readLive reads the metadata of an object from the server. It reports false if that fails.
func (a resourceView) readLive(ctx context.Context, name string) (writtenMetadata, bool) {
	r := a.request(VerbGet, name)
	r.Subresource, r.Representation, r.Live = "", MetadataOnly, true
	response, err := a.client.Do(ctx, r)
	if err != nil {
		return writtenMetadata{}, false
	}
	return metadataOf(response.Body)
}

func metadataOf(object []byte) (writtenMetadata, bool) {
	var o struct {
		Metadata writtenMetadata `json:"metadata"`
	}
	err := Unmarshal(object, &o)
	return o.Metadata, err == nil && o.Metadata.UID != "" && o.Metadata.ResourceVersion != ""
}

// mayRepeatStatus reports whether the status that was made from obj fits the live object as
// well: nobody has changed what is wanted, and nobody has written the status as this manager.
func mayRepeatStatus(obj Object, live writtenMetadata, manager string) bool {
	if live.UID != obj.GetUID() || live.Generation == 0 || live.Generation != obj.GetGeneration() {
		return false
	}
	read, written := statusEntry(obj.GetManagedFields(), manager), statusEntry(live.ManagedFields, manager)
	if read == nil || written == nil {
		return read == nil && written == nil
	}
	return read.Time.Equal(written.Time) && fieldsOf(read) == fieldsOf(written)
}

// statusEntry returns the entry of what manager has applied to the status, or nil.
func statusEntry(entries []metav1.ManagedFieldsEntry, manager string) *metav1.ManagedFieldsEntry {
	for i := range entries {
		e := &entries[i]
		if e.Manager == manager && e.Subresource == "status" && e.Operation == metav1.ManagedFieldsOperationApply {
			return e
		}
	}
	return nil
}

func fieldsOf(e *metav1.ManagedFieldsEntry) string {
	if e.FieldsV1 == nil {
		return ""
	}
	return e.FieldsV1.GetRawString()
}

// adoptStatus copies the managedFields and the resource version of the answer into obj, for later
// writes of obj. unchanged is false if the object had changed since obj was read. Then obj keeps its
// version, because obj differs from the new version, and a replace must fail.
func adoptStatus(obj Object, answer []byte, unchanged bool) {
	live, ok := metadataOf(answer)
	if !ok || live.UID != obj.GetUID() {
		return
	}
	obj.SetManagedFields(live.ManagedFields)
	if unchanged && obj.GetResourceVersion() != "" {
		obj.SetResourceVersion(live.ResourceVersion)
	}
}
