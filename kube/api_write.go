package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// asObject returns t as an Object, or an error if t is nil.
func (a API[T]) asObject(verb wire.Verb, t *T) (Object, error) {
	if a.target.err != nil {
		return nil, a.target.err
	}
	if t == nil {
		return nil, fmt.Errorf("%s %s: the object is nil", verb, a.target.resource)
	}
	return a.object(t), nil
}

// Create creates t, and returns the object that the server stored. If an object of its name exists,
// [IsAlreadyExists] reports the error.
func (a API[T]) Create(ctx context.Context, t *T, options ...WriteOption) (*T, error) {
	obj, err := a.asObject(wire.VerbCreate, t)
	if err != nil {
		return nil, err
	}
	r, err := a.target.createRequest(a.client, obj, options)
	if err != nil {
		return nil, err
	}
	created, err := a.send(ctx, r)
	return created, addObjectName(err, obj)
}

// Replace puts t in place of the object of its name, and returns the object that the server stored.
// If t has a resourceVersion, as an object that was read has, Replace fails if the object has changed
// since: see [IsConflict].
func (a API[T]) Replace(ctx context.Context, t *T, options ...WriteOption) (*T, error) {
	obj, err := a.asObject(wire.VerbUpdate, t)
	if err != nil {
		return nil, err
	}
	if a.target, err = a.target.inNamespaceOf(wire.VerbUpdate, obj); err == nil {
		err = a.target.requireName(wire.VerbUpdate, obj.GetName())
	}
	if err != nil {
		return nil, err
	}
	r := a.target.request(wire.VerbUpdate, obj.GetName())
	r.Query = newWriteOptions(a.client.manager, options).query()
	r.Preconditions = wire.Preconditions{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
	if r.Body, err = a.target.encode(obj); err != nil {
		return nil, err
	}
	return a.send(ctx, r)
}

// Patch changes parts of the object of that name, and returns the stored object.
func (a API[T]) Patch(ctx context.Context, name string, patch Patch, options ...WriteOption) (*T, error) {
	if err := a.target.requireName(wire.VerbPatch, name); err != nil {
		return nil, err
	}
	if err := patch.check(); err != nil {
		return nil, fmt.Errorf("patch %s %s: %w", a.target.resource, ident.Quoted(a.target.namespace, name), err)
	}
	r := a.target.request(wire.VerbPatch, name)
	r.Query = newWriteOptions(a.client.manager, options).query()
	r.ContentType, r.Body = patch.contentType, patch.body
	return a.send(ctx, r)
}

// Apply declares the fields of t by server-side apply, and returns the live object. It does not
// change t. The server removes the fields that this manager applied before, if t lacks them.
//
// What was not set is not sent: a nil value, and a struct that is the zero value of its Go type and not behind a
// pointer. Only the Go value decides, with the fields that are not exported: no method IsZero, and not the JSON of the
// value. Any other struct is sent, also as {}. So an author who means {} sets an empty map or list in the struct that
// is not nil. Behind a pointer, in a list or in a map, zero values are sent. Numbers, strings and booleans follow their
// json tags, so that a zero without omitempty is sent. In an unstructured object all that is there was set.
//
// A type with a [Definition] that is not Foreign has a schema that requires members: the fields without
// omitempty and omitzero, and those of the crd tag required. These are sent in any case. With the tag omitzero, a zero
// struct is not sent, and the server removes its fields.
//
// t must be built for the apply. An object that was read has the fields of all managers. An apply of this
// object would take over all these fields. Therefore an object with managedFields or a creationTimestamp is
// an error. A uid and a resourceVersion are preconditions.
//
// A zero status is not sent, and neither is the status of a resource with a status subresource: see
// [Client.ApplyStatus]. If a status of a foreign kind was set, discovery shows whether it has the subresource, once for
// each kind.
//
// If the server refuses the object because a member is missing that was not set, the error names the member.
//
// The stringData of a Secret is sent as data, where the server stores it. So the server removes a key that a later
// apply leaves out. A key of stringData overrules the same key of data.
//
// The client of a reconcile skips an apply that would change nothing, and returns the cached
// object. If only the metadata is cached, as of a Secret, the result is t with the metadata of the cache.
func (a API[T]) Apply(ctx context.Context, t *T, options ...ApplyOption) (*T, error) {
	obj, err := a.asObject(wire.VerbPatch, t)
	if err != nil {
		return nil, err
	}
	r, err := a.client.guardedApplyRequest(ctx, a.target, obj, options)
	if err != nil {
		return nil, err
	}
	live, err := a.send(ctx, r)
	return live, a.client.applyError(a.target.resource, obj, err)
}

const (
	// modifyAttempts bounds how often Modify sends the object.
	modifyAttempts = 6
	// firstModifyDelay is the mean wait before the second attempt. Each further wait is twice as long.
	firstModifyDelay = 10 * time.Millisecond
)

// Modify reads the object of that name as [API.Get] does, calls modify with it, and puts the result
// in place of the object. It returns what the server stored. If the object has changed meanwhile, Modify
// waits for a short random time, reads the object from the server, and calls modify with the new object.
// After five such repetitions Modify returns the conflict: see [IsConflict]. If modify changes nothing,
// nothing is sent. An error of modify ends Modify, and is returned, also if it is a conflict.
//
// If it is not known whether the server has stored the change, Modify returns the error: see [IsUnknown]. A repetition
// could make the change twice. For example, modify adds 1 to spec.size. The answer to the replace is lost, and
// somebody changes a label. Then the repeated replace is a conflict, although the size may be stored already.
//
// Modify may call modify several times, each time with another copy of the object. modify must change
// neither name nor namespace. The view of a subresource modifies that subresource: a change of the
// status needs [API.Status].
//
// The object is replaced as a whole. Fields that T lacks are removed, such as fields of a newer version
// of the kind: [API.PatchDifference] leaves these fields alone.
func (a API[T]) Modify(ctx context.Context, name string, modify func(*T) error, options ...WriteOption) (*T, error) {
	if err := a.target.requireName(wire.VerbUpdate, name); err != nil {
		return nil, err
	}
	if modify == nil {
		return nil, fmt.Errorf("modify %s %s: the function is nil", a.target.resource, ident.Quoted(a.target.namespace, name))
	}
	for attempt := 1; ; attempt++ {
		read := a.target.request(wire.VerbGet, name)
		read.Live = attempt > 1
		t, err := a.send(ctx, read)
		if err != nil {
			return nil, err
		}
		hasChanged, err := a.callModify(t, modify)
		if err != nil {
			return nil, err
		}
		if !hasChanged {
			return t, nil
		}
		stored, err := a.Replace(ctx, t, options...)
		if !IsConflict(err) || IsUnknown(err) || attempt == modifyAttempts {
			return stored, err
		}
		delay := firstModifyDelay << (attempt - 1)
		select {
		case <-time.After(delay/2 + rand.N(delay)):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w, after: %w", contextError(ctx), err)
		}
	}
}

// callModify calls modify with t, which was read. It reports whether t has changed.
func (a API[T]) callModify(t *T, modify func(*T) error) (hasChanged bool, err error) {
	m, err := newModification(a.target, a.object(t))
	if err != nil {
		return false, err
	}
	if err := modify(t); err != nil {
		return false, err
	}
	return m.restoreAndCompare()
}

// PatchDifference changes the object as it changed from before to after, by a merge patch, and
// returns what the server stored. before is the object as it was read, and after is the same object
// with the changes: see [DeepCopy] for a copy. If nothing has changed, nothing is sent, and after is
// returned.
//
// What the server sets in metadata, such as managedFields and resourceVersion, is not compared. If before and after
// have the same resourceVersion and other managedFields, the call is an error. Use a patch of [JSONPatch] to change
// managedFields. Fields that T lacks stay as they are. Fields with equal values in before and after also stay as they
// are, whoever changes these fields meanwhile. The uid of before is a precondition: see [IsUIDConflict]. A list is
// replaced as a whole. Therefore the resourceVersion of before is a precondition too if the difference has a list: see
// [IsConflict].
//
// The view of a subresource patches that subresource: a difference in the status needs [API.Status].
func (a API[T]) PatchDifference(ctx context.Context, before, after *T, options ...WriteOption) (*T, error) {
	old, err := a.asObject(wire.VerbPatch, before)
	if err != nil {
		return nil, err
	}
	changed, err := a.asObject(wire.VerbPatch, after)
	if err != nil {
		return nil, err
	}
	if a.target, err = a.target.inNamespaceOf(wire.VerbPatch, old); err == nil {
		err = a.target.requireName(wire.VerbPatch, old.GetName())
	}
	if err != nil {
		return nil, err
	}
	r, hasChanged, err := differenceRequest(a.target, old, changed, newWriteOptions(a.client.manager, options))
	switch {
	case err != nil:
		return nil, fmt.Errorf("patch %s %s: %w", a.target.resource, ident.Quoted(a.target.namespace, old.GetName()), err)
	case !hasChanged:
		return after, nil
	}
	return a.send(ctx, r)
}

// SetScale sets the wanted number of replicas, and returns what the server stored.
func (a API[T]) SetScale(ctx context.Context, name string, replicas int32, options ...WriteOption) (*Scale, error) {
	return setScale(ctx, a.client, a.target, name, replicas, options)
}

// Delete deletes the object of that name. If there is no such object, [IsNotFound] reports the error,
// and [IgnoreNotFound] drops the error.
func (a API[T]) Delete(ctx context.Context, name string, options ...DeleteOption) error {
	return deleteObject(ctx, a.client, a.target, name, options)
}

// DeleteAll deletes all objects that match, one namespace at a time. The first error ends DeleteAll.
// The namespaces must be named, by [Namespaced] or [Client.InNamespaces], unless T is cluster-scoped. The
// selectors must select by labels or fields; [Everything] deletes all objects of the namespaces.
func (a API[T]) DeleteAll(ctx context.Context, selectors []Selector, options ...DeleteOption) error {
	return deleteAll(ctx, a.client, a.target, selectors, options)
}
