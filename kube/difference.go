package kube

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"
)

// difference is the change from one state of an object to another.
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
	members, err := d.between(before, after)
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

// between returns the merge patch from one JSON object to another.
func (d *difference) between(before, after jsontext.Value) (map[string]any, error) {
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
			nested, err := d.between(old, value)
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
func (d difference) patch(p Preconditions) ([]byte, error) {
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

// checkDifference returns an error if the server would ignore a part of the difference.
func (a resourceView) checkDifference(d difference) error {
	_, hasStatus := d.members["status"]
	switch {
	case a.subresource == "" && a.statusApart && hasStatus:
		return errors.New("the status has changed, which this write leaves alone: change it in a write of its own, through API.Status")
	case a.subresource != "status":
		return nil
	}
	for name := range d.members {
		if name != "status" {
			return fmt.Errorf("%s has changed, which a write of the status leaves alone: change it in a write of its own", name)
		}
	}
	return nil
}

// identity holds the fields that a write must not change.
type identity struct {
	namespace, name string
	uid             types.UID
}

func identityOf(obj Object) identity {
	return identity{namespace: obj.GetNamespace(), name: obj.GetName(), uid: obj.GetUID()}
}

// check returns an error unless obj is the object that i names.
func (i identity) check(obj Object) error {
	if now := identityOf(obj); now != i {
		return fmt.Errorf("it was %s (uid %q) and is %s (uid %q) now: a write changes neither namespace, name nor uid",
			quoted(i.namespace, i.name), i.uid, quoted(now.namespace, now.name), now.uid)
	}
	return nil
}
