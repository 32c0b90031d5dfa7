package kube

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/kube/wire"
)

// difference is the change from one state of an object to another.
//
// The difference from
//
//	{"metadata":{"labels":{"a":"1","b":"2"},"resourceVersion":"7"},"spec":{"size":1,"args":["x"]}}
//
// to
//
//	{"metadata":{"labels":{"a":"1"},"resourceVersion":"7"},"spec":{"size":2,"args":["x"]}}
//
// is {"metadata":{"labels":{"b":null}},"spec":{"size":2}}. It has no list, because args is equal in both.
type difference struct {
	// members is the merge patch (RFC 7386): a member is a jsontext.Value, a nested map, or nil if
	// it is removed.
	members map[string]any
	// hasList is true if the difference replaces or removes a list.
	hasList bool
}

// differenceOf returns the difference between two states of an object, which are JSON. The resource
// version and the managedFields do not count: the server sets them.
func differenceOf(before, after []byte) (difference, error) {
	var d difference
	members, err := d.mergePatch(before, after)
	if err != nil {
		return difference{}, err
	}
	if metadata, ok := members["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		if len(metadata) == 0 {
			delete(members, "metadata")
		}
	}
	d.members = members
	return d, nil
}

// mergePatch returns the merge patch from one JSON object to another.
func (d *difference) mergePatch(before, after jsontext.Value) (map[string]any, error) {
	var from, to map[string]jsontext.Value
	if err := errors.Join(Unmarshal(before, &from), Unmarshal(after, &to)); err != nil {
		return nil, err
	}
	patch := make(map[string]any)
	for name, value := range to {
		old := from[name]
		switch {
		case isNull(value) || bytes.Equal(old, value):
		case old.Kind() == '{' && value.Kind() == '{':
			nested, err := d.mergePatch(old, value)
			if err != nil {
				return nil, err
			}
			if len(nested) > 0 {
				patch[name] = nested
			}
		default:
			patch[name] = value
			d.recordLists(name, old, value)
		}
	}
	for name, old := range from {
		if !isNull(old) && isNull(to[name]) {
			patch[name] = nil
			d.recordLists(name, old)
		}
	}
	return patch, nil
}

// recordLists records whether values may contain a list. A bracket within a string counts too, which
// costs only a precondition.
func (d *difference) recordLists(name string, values ...jsontext.Value) {
	if name == "managedFields" {
		return
	}
	for _, value := range values {
		d.hasList = d.hasList || bytes.IndexByte(value, '[') >= 0
	}
}

func isNull(value jsontext.Value) bool { return len(value) == 0 || value.Kind() == 'n' }

// patch returns the merge patch with preconditions.
func (d difference) patch(p wire.Preconditions) ([]byte, error) {
	metadata, ok := d.members["metadata"].(map[string]any)
	if !ok {
		metadata = make(map[string]any)
		d.members["metadata"] = metadata
	}
	metadata["uid"] = p.UID
	if p.ResourceVersion != "" {
		metadata["resourceVersion"] = p.ResourceVersion
	}
	return Marshal(d.members)
}

// check returns an error if a write of t would ignore a part of the difference.
func (d difference) check(t target) error {
	_, hasStatus := d.members["status"]
	switch {
	case t.subresource == "" && t.hasStatusSubresource && hasStatus:
		return errors.New(
			"the status has changed, which this write leaves alone: change it in a write of its own, through API.Status")
	case t.subresource != "status":
		return nil
	}
	for name := range d.members {
		if name != "status" {
			return fmt.Errorf("%s has changed, which a write of the status leaves alone: change it in a write of its own", name)
		}
	}
	return nil
}

// differenceRequest returns the patch from before to after. If they are equal, hasChanged is false, and there is no
// patch.
func differenceRequest(
	t target, before, after Object, options writeOptions,
) (r *wire.Request, hasChanged bool, err error) {
	if before.GetUID() == "" {
		return nil, false, errors.New("the object before has no uid: give PatchDifference the object as it was read")
	}
	if err := identityOf(before).check(after); err != nil {
		return nil, false, err
	}
	// Two reads of an object have different managedFields if somebody has changed the object in between.
	if before.GetResourceVersion() == after.GetResourceVersion() &&
		!reflect.DeepEqual(before.GetManagedFields(), after.GetManagedFields()) {
		return nil, false, errors.New(
			"managedFields have changed, which PatchDifference leaves alone: change them by a patch of kube.JSONPatch")
	}
	from, err := t.encode(before)
	if err != nil {
		return nil, false, err
	}
	to, err := t.encode(after)
	if err != nil {
		return nil, false, err
	}
	d, err := differenceOf(from, to)
	if err == nil {
		err = d.check(t)
	}
	if err != nil || len(d.members) == 0 {
		return nil, false, err
	}
	r = t.request(wire.VerbPatch, before.GetName())
	r.Query, r.ContentType = options.query(), wire.ContentMergePatch
	r.Preconditions.UID = before.GetUID()
	if d.hasList {
		r.Preconditions.ResourceVersion = before.GetResourceVersion()
	}
	r.Body, err = d.patch(r.Preconditions)
	return r, true, err
}
