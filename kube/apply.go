package kube

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// applier makes the requests that apply objects of a target.
type applier struct {
	target  target
	manager string
	pruner  *pruner
}

func newApplier(t target, c *Client) applier { return applier{t, c.manager, c.pruner} }

// request returns the apply of obj, or of its status if the target is the status.
func (a applier) request(obj Object, options []ApplyOption) (*wire.Request, error) {
	t := a.target
	name := ident.Quoted(obj.GetNamespace(), obj.GetName())
	signOfRead := ""
	switch {
	case t.subresource == "status":
		return a.statusRequest(obj, obj.GetResourceVersion(), options)
	case t.subresource != "":
		return nil, fmt.Errorf("apply %s/%s %s: only the whole object and its status can be applied: use Patch or Replace",
			t.resource, t.subresource, name)
	case len(obj.GetManagedFields()) > 0:
		signOfRead = "managedFields"
	case obj.GetCreationTimestamp() != (metav1.Time{}):
		signOfRead = "a creationTimestamp"
	}
	if signOfRead != "" {
		return nil, fmt.Errorf("apply %s %s: the object was read, because it has %s: an apply of it would take over the fields of all managers: build a new object with the fields to declare",
			t.resource, name, signOfRead)
	}
	body, err := a.pruner.applyBody(obj, t.resource, t.sendsStatus)
	if err == nil && t.resource.GroupResource() == (schema.GroupResource{Resource: "secrets"}) {
		body, err = withStringDataMoved(body)
	}
	if err != nil {
		return nil, a.encodeError(obj, err)
	}
	return a.requestWithBody(body, obj, obj.GetResourceVersion(), options), nil
}

// withStringDataMoved returns the apply of a Secret without stringData. Its keys are in data, as the server stores
// them. A key of stringData overrules the same key of data, as on the server. So
// {"data":{"a":"MQ=="},"stringData":{"a":"2","b":"3"}} becomes {"data":{"a":"Mg==","b":"Mw=="}}. The server would
// record the fields of stringData as owned, and would not remove a key from data that a later apply leaves out.
func withStringDataMoved(body []byte) ([]byte, error) {
	var members map[string]jsontext.Value
	if err := Unmarshal(body, &members); err != nil || members["stringData"] == nil {
		return body, err
	}
	var secret struct {
		StringData map[string]string         `json:"stringData"`
		Data       map[string]jsontext.Value `json:"data"`
	}
	if err := Unmarshal(body, &secret); err != nil {
		return nil, err
	}
	delete(members, "stringData")
	if len(secret.StringData) > 0 && secret.Data == nil {
		secret.Data = make(map[string]jsontext.Value)
	}
	for key, text := range secret.StringData {
		secret.Data[key] = jsontext.Value(strconv.Quote(base64.StdEncoding.EncodeToString([]byte(text))))
	}
	if secret.Data != nil {
		data, err := Marshal(secret.Data)
		if err != nil {
			return nil, err
		}
		members["data"] = data
	}
	return Marshal(members)
}

// statusRequest returns the apply of the status of obj to the version of the live object.
func (a applier) statusRequest(obj Object, resourceVersion string, options []ApplyOption) (*wire.Request, error) {
	body, err := a.pruner.statusBody(obj, a.target.resource, resourceVersion)
	if err != nil {
		return nil, a.encodeError(obj, err)
	}
	return a.requestWithBody(body, obj, resourceVersion, options), nil
}

// encodeError returns the error of an apply of obj whose body could not be made because of err.
func (a applier) encodeError(obj Object, err error) error {
	return fmt.Errorf("encode %s %s: %w", a.target.resource, ident.Quoted(obj.GetNamespace(), obj.GetName()), err)
}

// requestWithBody returns the apply of body, which was made of obj.
func (a applier) requestWithBody(body []byte, obj Object, resourceVersion string, options []ApplyOption) *wire.Request {
	o := newWriteOptions(a.manager, options)
	r := a.target.request(wire.VerbPatch, obj.GetName())
	r.Query, r.ContentType, r.Body, r.Adopt = o.query(), wire.ContentApply, body, o.isAdoption
	if !o.isUnforced {
		r.Query.Set("force", "true")
	}
	r.Preconditions = wire.Preconditions{UID: obj.GetUID(), ResourceVersion: resourceVersion}
	return r
}

// statusAttempts bounds how often the apply of a status is sent.
const statusAttempts = 5

// statusApply applies the status of one object, and repeats the apply after a conflict that does not
// concern the status.
//
// An object was read at version 5, and its status is to be applied. Meanwhile somebody has changed a label,
// so that the object is at version 6, and the server answers with a conflict. The generation has not
// changed, and nobody has written the status as this manager. So the status is applied to version 6. If the
// generation has changed, the status was made from an old spec, and the conflict is returned.
type statusApply struct {
	handler wire.Handler
	applier applier
	object  Object
	options []ApplyOption
}

// run sends the apply, and copies the metadata of the answer to the object.
func (s statusApply) run(ctx context.Context) error {
	o := newWriteOptions(s.applier.manager, s.options)
	version := s.object.GetResourceVersion()
	for attempt := 1; ; attempt++ {
		r, err := s.applier.statusRequest(s.object, version, s.options)
		if err != nil {
			return err
		}
		response, err := s.handler.Do(ctx, r)
		if err == nil {
			if !o.isDryRun && !response.Cached {
				s.copyMetadata(response.Body, attempt == 1)
			}
			return nil
		}
		if attempt == statusAttempts || version == "" || !IsConflict(err) || IsApplyConflict(err) {
			return err
		}
		live, ok := s.readLive(ctx)
		if !ok || !s.mayRepeat(live, o.manager) {
			return err
		}
		version = live.ResourceVersion
	}
}

// serverMetadata is the metadata of an object as the server has them.
type serverMetadata struct {
	ident.Metadata
	// managers is the decoded content of ManagedFields.
	managers []metav1.ManagedFieldsEntry
}

// newServerMetadata returns the metadata of an object, which is JSON. It reports false if they cannot
// be read.
func newServerMetadata(object []byte) (serverMetadata, bool) {
	var answer ident.Answer
	if Unmarshal(object, &answer) != nil {
		return serverMetadata{}, false
	}
	m := serverMetadata{Metadata: answer.Metadata}
	if len(m.ManagedFields) > 0 && Unmarshal(m.ManagedFields, &m.managers) != nil {
		return serverMetadata{}, false
	}
	return m, m.UID != "" && m.ResourceVersion != ""
}

// readLive reads the metadata of the object from the server. It reports false if that fails.
func (s statusApply) readLive(ctx context.Context) (serverMetadata, bool) {
	r := s.applier.target.request(wire.VerbGet, s.object.GetName())
	r.Subresource, r.Representation, r.Live = "", wire.MetadataOnly, true
	response, err := s.handler.Do(ctx, r)
	if err != nil {
		return serverMetadata{}, false
	}
	return newServerMetadata(response.Body)
}

// mayRepeat reports whether the status also fits the live object: nobody has changed the spec, and
// nobody has written the status as this manager. The time of a write has a resolution of a second, so two writes
// within one second look like one. If another process writes the same fields as this manager within that second,
// mayRepeat does not notice the write. A comparison of the values cannot show the write either: the author of s.object
// has changed the status in place, so the status that was read is lost.
func (s statusApply) mayRepeat(live serverMetadata, manager string) bool {
	if live.UID != s.object.GetUID() || live.Generation == 0 || live.Generation != s.object.GetGeneration() {
		return false
	}
	read, written := statusEntry(s.object.GetManagedFields(), manager), statusEntry(live.managers, manager)
	if read == nil || written == nil {
		return read == nil && written == nil
	}
	return read.Time.Equal(written.Time) && fieldsOf(read) == fieldsOf(written)
}

// copyMetadata copies the managedFields and the resource version of the answer into the object, for later
// writes of the object. isUnchanged is false if somebody had changed the object since it was read. Then the
// object keeps its version: the object differs from the new version, so a replace must fail.
func (s statusApply) copyMetadata(answer []byte, isUnchanged bool) {
	live, ok := newServerMetadata(answer)
	if !ok || live.UID != s.object.GetUID() {
		return
	}
	s.object.SetManagedFields(live.managers)
	if isUnchanged && s.object.GetResourceVersion() != "" {
		s.object.SetResourceVersion(live.ResourceVersion)
	}
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
