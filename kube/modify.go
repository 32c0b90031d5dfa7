package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// modifyAttempts bounds how often Modify sends the object.
	modifyAttempts = 6
	// firstModifyDelay is the mean wait before the second attempt. Each further wait is twice as long.
	firstModifyDelay = 10 * time.Millisecond
)

// Modify reads the object of that name as [API.Get] does, calls modify with it, and puts the result
// in place of the object. It returns what the server stored. If the object has changed since it was
// read, Modify reads it from the server and calls modify again, at most five times, after a short
// random wait. Then the conflict is returned: see [IsConflict]. If modify changes nothing, nothing is
// sent. An error of modify ends Modify, and is returned.
//
// Modify may call modify several times, each time with an object of its own. modify must change
// neither name nor namespace. The view of a subresource modifies that subresource: a change of the
// status needs [API.Status].
//
// The object is replaced as a whole. Fields that T lacks are removed, such as fields of a newer version
// of the kind: see [API.PatchDifference] for a write that leaves such fields alone.
func (a API[T]) Modify(ctx context.Context, name string, modify func(*T) error, options ...WriteOption) (*T, error) {
	if err := a.requireName(VerbUpdate, name); err != nil {
		return nil, err
	}
	if modify == nil {
		return nil, fmt.Errorf("modify %s %s: the function is nil", a.resource, quoted(a.namespace, name))
	}
	for attempt := 1; ; attempt++ {
		read := a.request(VerbGet, name)
		read.Live = attempt > 1
		t, err := a.do(ctx, read)
		if err != nil {
			return nil, err
		}
		stored, err := a.modifyOnce(ctx, t, modify, options)
		if !IsConflict(err) || attempt == modifyAttempts {
			return stored, err
		}
		delay := firstModifyDelay << (attempt - 1)
		select {
		case <-time.After(delay/2 + rand.N(delay)):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w, after: %w", callerGone(ctx), err)
		}
	}
}

// modifyOnce calls modify with t, which was read, and replaces the object if t has changed.
func (a API[T]) modifyOnce(ctx context.Context, t *T, modify func(*T) error, options []WriteOption) (*T, error) {
	obj := a.object(t)
	before, err := a.encode(obj)
	if err != nil {
		return nil, err
	}
	read := identityOf(obj)
	version := obj.GetResourceVersion()
	if err := modify(t); err != nil {
		return nil, err
	}
	// The version is the condition under which the result may be stored.
	obj.SetResourceVersion(version)
	after, err := a.encode(obj)
	if err != nil {
		return nil, err
	}
	d, err := differenceOf(before, after)
	if err = cmp.Or(err, read.check(obj), a.checkDifference(d)); err != nil {
		return nil, fmt.Errorf("modify %s %s: %w", a.resource, quoted(read.namespace, read.name), err)
	}
	if len(d.members) == 0 {
		return t, nil
	}
	return a.Replace(ctx, t, options...)
}

// PatchDifference changes the object as it changed from before to after, by a merge patch, and
// returns what the server stored. before is the object as it was read, and after is the same object
// with the changes: see [DeepCopy] for a copy. If nothing has changed, nothing is sent, and after is
// returned.
//
// Fields that T lacks, and fields that are equal in both, stay as they are, whoever changes them
// meanwhile. The uid of before is a precondition: see [IsUIDConflict]. A list is replaced as a whole.
// Therefore the resourceVersion of before is a precondition too if the difference has a list: see
// [IsConflict].
//
// The view of a subresource patches that subresource: a difference in the status needs [API.Status].
func (a API[T]) PatchDifference(ctx context.Context, before, after *T, options ...WriteOption) (*T, error) {
	old, err := a.given(VerbPatch, before)
	if err != nil {
		return nil, err
	}
	changed, err := a.given(VerbPatch, after)
	if err != nil {
		return nil, err
	}
	if a.resourceView, err = a.inNamespaceOf(VerbPatch, old); err == nil {
		err = a.requireName(VerbPatch, old.GetName())
	}
	if err != nil {
		return nil, err
	}
	r, err := a.differenceRequest(old, changed, options)
	switch {
	case err != nil:
		return nil, fmt.Errorf("patch %s %s: %w", a.resource, quoted(a.namespace, old.GetName()), err)
	case r == nil:
		return after, nil
	}
	return a.do(ctx, r)
}

// differenceRequest returns the patch from before to after, or nil if they are equal.
func (a resourceView) differenceRequest(before, after Object, options []WriteOption) (*Request, error) {
	if before.GetUID() == "" {
		return nil, errors.New("the object before has no uid: give PatchDifference the object as it was read")
	}
	if err := identityOf(before).check(after); err != nil {
		return nil, err
	}
	from, err := a.encode(before)
	if err != nil {
		return nil, err
	}
	to, err := a.encode(after)
	if err != nil {
		return nil, err
	}
	d, err := differenceOf(from, to)
	if err == nil {
		err = a.checkDifference(d)
	}
	if err != nil || len(d.members) == 0 {
		return nil, err
	}
	r := a.request(VerbPatch, before.GetName())
	r.Query, r.ContentType = a.writeQuery(options), ContentMergePatch
	r.Preconditions.UID = before.GetUID()
	if d.hasList {
		r.Preconditions.ResourceVersion = before.GetResourceVersion()
	}
	r.Body, err = d.patch(r.Preconditions)
	return r, err
}
