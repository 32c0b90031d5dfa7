package kube

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
)

// modification is an object that a function of [API.Modify] changes in place.
type modification struct {
	target target
	object Object
	// before is the object as it was read, in JSON, and original is its identity.
	before   []byte
	original identity
	version  string
}

// newModification returns a modification of obj, an object of t that was read and not yet changed.
func newModification(t target, obj Object) (modification, error) {
	before, err := t.encode(obj)
	return modification{t, obj, before, identityOf(obj), obj.GetResourceVersion()}, err
}

// restoreAndCompare sets the resource version of the object to that of the read, and returns whether the object has
// changed otherwise. The resource version is the condition under which the change may be stored. restoreAndCompare
// returns an error if the server would refuse the change, or would ignore a part of the change.
func (m modification) restoreAndCompare() (hasChanged bool, err error) {
	m.object.SetResourceVersion(m.version)
	after, err := m.target.encode(m.object)
	if err != nil {
		return false, err
	}
	d, err := differenceOf(m.before, after)
	if err = cmp.Or(err, m.original.check(m.object), d.check(m.target)); err != nil {
		return false, fmt.Errorf("modify %s %s: %w",
			m.target.resource, ident.Quoted(m.original.namespace, m.original.name), err)
	}
	return len(d.members) > 0, nil
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
			ident.Quoted(i.namespace, i.name), i.uid, ident.Quoted(now.namespace, now.name), now.uid)
	}
	return nil
}
