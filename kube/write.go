package kube

import (
	"context"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WriteOption changes how something is written.
type WriteOption func(*writeOptions)

type writeOptions struct {
	dryRun  bool
	manager string
	noForce bool
	strict  bool
	adopt   bool
}

// DryRun lets the server do all but store the result.
func DryRun() WriteOption { return func(o *writeOptions) { o.dryRun = true } }

// FieldManager records this write under another name than the client's.
func FieldManager(name string) WriteOption { return func(o *writeOptions) { o.manager = name } }

// NoForce makes an apply fail, as [IsApplyConflict] tells, where another manager owns a
// field and wants another value. Without it the fields are taken over, which is what
// Kubernetes recommends to controllers.
func NoForce() WriteOption { return func(o *writeOptions) { o.noForce = true } }

// Strict makes the server refuse fields that it does not know, instead of dropping them.
func Strict() WriteOption { return func(o *writeOptions) { o.strict = true } }

// Adopt lets an apply in a controller take over an object that somebody else made, as a child
// of the reconciled object. The garbage collector will delete that object with its owner.
// Without Adopt the controller refuses such an apply: see controller.ErrForeignChild. An object
// that another owner controls is refused either way.
func Adopt() WriteOption { return func(o *writeOptions) { o.adopt = true } }

func (a API[T]) writeQuery(options []WriteOption) (url.Values, writeOptions) {
	o := writeOptions{manager: a.client.manager}
	for _, option := range options {
		option(&o)
	}
	q := url.Values{}
	if o.dryRun {
		q.Set("dryRun", "All")
	}
	if o.manager != "" {
		q.Set("fieldManager", o.manager)
	}
	if o.strict {
		q.Set("fieldValidation", "Strict")
	}
	return q, o
}

// encode is the body of a write of obj, with its kind filled in. It is filled into the
// JSON, not into a copy of the object, because the copy of an unstructured object, or of
// one that embeds a pointer, is not deep enough.
func (a API[T]) encode(obj Object) ([]byte, error) {
	data, err := Marshal(obj)
	if err == nil {
		data, err = withKind(data, a.resource)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", a.resource, quoted(obj.GetNamespace(), obj.GetName()), err)
	}
	return data, nil
}

// given is t as an Object, which it is not if it is nil.
func (a API[T]) given(verb Verb, t *T) (Object, error) {
	if a.err != nil {
		return nil, a.err
	}
	if t == nil {
		return nil, fmt.Errorf("%s %s: the object is nil", verb, a.resource)
	}
	return a.object(t), nil
}

// place is a in the namespace of obj.
func (a API[T]) place(verb Verb, obj Object) (API[T], error) {
	if a.err != nil {
		return a, a.err
	}
	namespace := obj.GetNamespace()
	switch {
	case a.resource.ClusterScoped && namespace != "":
		return a, fmt.Errorf("%s %s %q: it lives outside of namespaces but has the namespace %q", verb, a.resource, obj.GetName(), namespace)
	case a.namespace == "":
		a.namespace = namespace
	case namespace != "" && namespace != a.namespace:
		return a, fmt.Errorf("%s %s %s: it is not in the namespace %q", verb, a.resource, quoted(namespace, obj.GetName()), a.namespace)
	}
	if a.namespace == "" && !a.resource.ClusterScoped {
		return a, fmt.Errorf("%s %s %q: it has no namespace", verb, a.resource, obj.GetName())
	}
	if a.namespace != "" {
		if err := checkSegment("namespace", a.namespace); err != nil {
			return a, fmt.Errorf("%s %s %q: %w", verb, a.resource, obj.GetName(), err)
		}
	}
	return a, nil
}

// Create creates t, and returns what the server stored.
func (a API[T]) Create(ctx context.Context, t *T, options ...WriteOption) (*T, error) {
	obj, err := a.given(VerbCreate, t)
	if err != nil {
		return nil, err
	}
	if err := a.whole(VerbCreate, obj.GetName()); err != nil {
		return nil, err
	}
	if a, err = a.place(VerbCreate, obj); err != nil {
		return nil, err
	}
	if obj.GetName() == "" && obj.GetGenerateName() == "" && !a.resource.isQuestion() {
		return nil, fmt.Errorf("create %s: it has neither a name nor a generateName", a.resource)
	}
	r := a.request(VerbCreate, "")
	r.Query, _ = a.writeQuery(options)
	if r.Body, err = a.encode(obj); err != nil {
		return nil, err
	}
	created, err := a.do(ctx, r)
	if e, ok := AsError(err); ok && e.Ref.Name == "" {
		e.Ref.Name = obj.GetName() // the request has it in its body only
	}
	return created, err
}

// Replace puts t in place of the object of its name. With a resourceVersion, as an object
// has that was read, it fails if the object has changed since: see [IsConflict].
func (a API[T]) Replace(ctx context.Context, t *T, options ...WriteOption) (*T, error) {
	obj, err := a.given(VerbUpdate, t)
	if err != nil {
		return nil, err
	}
	if a, err = a.place(VerbUpdate, obj); err == nil {
		err = a.one(VerbUpdate, obj.GetName())
	}
	if err != nil {
		return nil, err
	}
	r := a.request(VerbUpdate, obj.GetName())
	r.Query, _ = a.writeQuery(options)
	r.Preconditions = Preconditions{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
	if r.Body, err = a.encode(obj); err != nil {
		return nil, err
	}
	return a.do(ctx, r)
}

// Patch changes parts of the object of that name, and returns the whole.
func (a API[T]) Patch(ctx context.Context, name string, patch Patch, options ...WriteOption) (*T, error) {
	if err := a.one(VerbPatch, name); err != nil {
		return nil, err
	}
	if err := patch.check(); err != nil {
		return nil, fmt.Errorf("patch %s %s: %w", a.resource, quoted(a.namespace, name), err)
	}
	r := a.request(VerbPatch, name)
	r.Query, _ = a.writeQuery(options)
	r.ContentType, r.Body = patch.contentType, patch.body
	return a.do(ctx, r)
}

// Apply declares what t says, by server-side apply, and returns what is live; t is left
// alone. Fields that this manager applied before and that t does not have any more are
// removed. What t does not say is not sent: nil values, and structs without any content
// that are not behind a pointer. Numbers, strings and booleans follow their json tags, so
// that a zero without omitempty is a value that is meant; so do the structs of a type with
// a [Definition], whose schema requires what has no omitempty: such a struct is sent as {} when
// it is empty. Tag it omitzero if emptying it is to remove what was in it.
func (a API[T]) Apply(ctx context.Context, t *T, options ...WriteOption) (*T, error) {
	obj, err := a.given(VerbPatch, t)
	if err != nil {
		return nil, err
	}
	if a, err = a.place(VerbPatch, obj); err == nil {
		err = a.one(VerbPatch, obj.GetName())
	}
	if err != nil {
		return nil, err
	}
	r, err := a.applyRequest(obj, options)
	if err != nil {
		return nil, err
	}
	return a.do(ctx, r)
}

func (a API[T]) applyRequest(obj Object, options []WriteOption) (*Request, error) {
	query, o := a.writeQuery(options)
	if !o.noForce {
		query.Set("force", "true")
	}
	r := a.request(VerbPatch, obj.GetName())
	r.Query, r.ContentType, r.Adopt = query, ContentApply, o.adopt
	r.Preconditions = Preconditions{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
	var err error
	if r.Body, err = a.client.prune.applyBody(obj, a.resource, a.subresource); err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", a.resource, quoted(obj.GetNamespace(), obj.GetName()), err)
	}
	return r, nil
}

// Apply declares t in its own namespace: see [API.Apply].
func Apply[T any, P ObjectOf[T]](ctx context.Context, c *Client, t *T, options ...WriteOption) (*T, error) {
	return All[T, P](c).Apply(ctx, t, options...)
}

// ApplyStatus declares the status of obj, and nothing else of it; an empty one takes away
// what this manager applied before. The object must have
// been read: its uid and resourceVersion go along, so that the status of an object that
// was deleted and made anew is not overwritten.
func (c *Client) ApplyStatus(ctx context.Context, obj Object, options ...WriteOption) error {
	t, err := typeOfLive(VerbPatch, obj)
	if err != nil {
		return err
	}
	a := makeAPI[metav1.PartialObjectMetadata](c, t.Resource, obj.GetNamespace(), Full, t.HasStatus(), nil)
	a.subresource = "status"
	switch err := a.one(VerbPatch, obj.GetName()); {
	case !t.HasStatus():
		return fmt.Errorf("apply the status of %s: %s has none", t.Resource, TypeName(t.Go))
	case err != nil:
		return err
	case obj.GetUID() == "":
		return fmt.Errorf("apply the status of %s %s: it has no uid: read the object first, or use what Apply returned",
			t.Resource, quoted(obj.GetNamespace(), obj.GetName()))
	}
	r, err := a.applyRequest(obj, options)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, r)
	return err
}
