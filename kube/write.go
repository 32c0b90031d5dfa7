package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplyOption changes how something is applied.
type ApplyOption interface{ changeApply(*writeOptions) }

// WriteOption changes how something is written: created, replaced, patched or applied.
type WriteOption interface {
	ApplyOption
	changeWrite(*writeOptions)
}

// writeOptions holds the result of all options of a write.
type writeOptions struct {
	dryRun  bool
	manager string
	noForce bool
	strict  bool
	adopt   bool
}

type applyOption func(*writeOptions)

func (f applyOption) changeApply(o *writeOptions) { f(o) }

type writeOption func(*writeOptions)

func (f writeOption) changeApply(o *writeOptions) { f(o) }
func (f writeOption) changeWrite(o *writeOptions) { f(o) }

// DryRunOption is the type of [DryRun]. It is an option of writes and of deletes.
type DryRunOption struct{}

func (DryRunOption) changeApply(o *writeOptions)          { o.dryRun = true }
func (DryRunOption) changeWrite(o *writeOptions)          { o.dryRun = true }
func (DryRunOption) changeDelete(o *metav1.DeleteOptions) { o.DryRun = []string{metav1.DryRunAll} }

// DryRun makes the server check and answer a write or a deletion without carrying it out.
func DryRun() DryRunOption { return DryRunOption{} }

// FieldManager records this write under another name than [Client.FieldManager].
func FieldManager(name string) WriteOption {
	return writeOption(func(o *writeOptions) { o.manager = name })
}

// NoForce makes an apply fail if another manager owns a field and wants another value: see
// [IsApplyConflict]. Without NoForce the apply takes over the fields, which is what Kubernetes
// recommends to controllers (https://kubernetes.io/docs/reference/using-api/server-side-apply/).
func NoForce() ApplyOption { return applyOption(func(o *writeOptions) { o.noForce = true }) }

// Strict makes the server refuse fields that it does not know, instead of dropping them.
func Strict() WriteOption { return writeOption(func(o *writeOptions) { o.strict = true }) }

// Adopt lets an apply in a controller take over an object that somebody else made, as a child
// of the reconciled object. The garbage collector will delete that object with its owner.
// Without Adopt the controller refuses such an apply: see controller.ErrForeignChild. An object
// that another owner controls is refused either way.
func Adopt() ApplyOption { return applyOption(func(o *writeOptions) { o.adopt = true }) }

// writeQuery returns the parameters of a write.
func (a resourceView) writeQuery(options []WriteOption) url.Values {
	o := writeOptions{manager: a.client.manager}
	for _, option := range options {
		option.changeWrite(&o)
	}
	return o.query()
}

// applyQuery returns the parameters of an apply, and its options.
func (a resourceView) applyQuery(options []ApplyOption) (url.Values, writeOptions) {
	o := writeOptions{manager: a.client.manager}
	for _, option := range options {
		option.changeApply(&o)
	}
	q := o.query()
	if !o.noForce {
		q.Set("force", "true")
	}
	return q, o
}

func (o writeOptions) query() url.Values {
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
	return q
}

// encode returns the body of a write of obj, with its kind filled in. The kind goes into the
// JSON and not into a copy of the object, because the copy of an unstructured object, or of
// one that embeds a pointer, is not deep enough.
func (a resourceView) encode(obj Object) ([]byte, error) {
	data, err := Marshal(obj)
	if err == nil {
		data, err = withKind(data, a.resource)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", a.resource, quoted(obj.GetNamespace(), obj.GetName()), err)
	}
	return data, nil
}

// given returns t as an Object, or an error if it is nil.
func (a API[T]) given(verb Verb, t *T) (Object, error) {
	if a.err != nil {
		return nil, a.err
	}
	if t == nil {
		return nil, fmt.Errorf("%s %s: the object is nil", verb, a.resource)
	}
	return a.object(t), nil
}

// inNamespaceOf returns a in the namespace of obj, or an error if obj does not belong into a.
func (a resourceView) inNamespaceOf(verb Verb, obj Object) (resourceView, error) {
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

// Create creates t, and returns the object that the server stored. If an object of its name exists,
// [IsAlreadyExists] reports the error.
func (a API[T]) Create(ctx context.Context, t *T, options ...WriteOption) (*T, error) {
	obj, err := a.given(VerbCreate, t)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(a.rejectSubresource(VerbCreate, obj.GetName()), a.rejectProjection(VerbCreate, obj.GetName())); err != nil {
		return nil, err
	}
	if a.resourceView, err = a.inNamespaceOf(VerbCreate, obj); err != nil {
		return nil, err
	}
	if obj.GetName() == "" && obj.GetGenerateName() == "" && !a.resource.isReview() {
		return nil, fmt.Errorf("create %s: it has neither a name nor a generateName", a.resource)
	}
	r := a.request(VerbCreate, "")
	r.Query = a.writeQuery(options)
	if r.Body, err = a.encode(obj); err != nil {
		return nil, err
	}
	created, err := a.do(ctx, r)
	if e, ok := AsError(err); ok && e.Ref.Name == "" {
		e.Ref.Name = obj.GetName() // the request has it in its body only
	}
	return created, err
}

// Replace puts t in place of the object of its name, and returns the object that the server stored.
// If t has a resourceVersion, as an object that was read has, Replace fails if the object has changed
// since: see [IsConflict].
func (a API[T]) Replace(ctx context.Context, t *T, options ...WriteOption) (*T, error) {
	obj, err := a.given(VerbUpdate, t)
	if err != nil {
		return nil, err
	}
	if a.resourceView, err = a.inNamespaceOf(VerbUpdate, obj); err == nil {
		err = a.requireName(VerbUpdate, obj.GetName())
	}
	if err != nil {
		return nil, err
	}
	r := a.request(VerbUpdate, obj.GetName())
	r.Query = a.writeQuery(options)
	r.Preconditions = Preconditions{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
	if r.Body, err = a.encode(obj); err != nil {
		return nil, err
	}
	return a.do(ctx, r)
}

// Patch changes parts of the object of that name, and returns the object that the server stored.
func (a API[T]) Patch(ctx context.Context, name string, patch Patch, options ...WriteOption) (*T, error) {
	if err := a.requireName(VerbPatch, name); err != nil {
		return nil, err
	}
	if err := patch.check(); err != nil {
		return nil, fmt.Errorf("patch %s %s: %w", a.resource, quoted(a.namespace, name), err)
	}
	r := a.request(VerbPatch, name)
	r.Query = a.writeQuery(options)
	r.ContentType, r.Body = patch.contentType, patch.body
	return a.do(ctx, r)
}

// Apply declares the fields of t by server-side apply, and returns the live object. It does not
// change t. Fields that this manager applied before and that t does not have any more are
// removed.
//
// Empty parts of t are not sent: nil values; the zero values of structs that encode
// themselves, such as an IntOrString or a Quantity; and structs without any content. Behind a
// pointer, in a list or in a map, all of these are sent. Numbers, strings and booleans follow
// their json tags, so that a zero without omitempty is sent. The structs of a type with a
// [Definition] follow their json tags too, because its schema requires every field without
// omitempty: an empty struct is sent as {}. Tag it omitzero if emptying it is to remove its fields.
//
// t must be built for the apply. An object that was read has the fields of all managers, and
// an apply of it would take over all of them. Therefore an object with managedFields or a
// creationTimestamp is an error. A uid and a resourceVersion are preconditions.
//
// The status of a resource with a status subresource is not sent: see [Client.ApplyStatus].
//
// The client of a reconcile skips an apply that would change nothing, and returns the cached
// object. If only the metadata is cached, as of a Secret, the result is t with the live metadata.
func (a API[T]) Apply(ctx context.Context, t *T, options ...ApplyOption) (*T, error) {
	obj, err := a.given(VerbPatch, t)
	if err != nil {
		return nil, err
	}
	if a.resourceView, err = a.inNamespaceOf(VerbPatch, obj); err == nil {
		err = a.requireName(VerbPatch, obj.GetName())
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

// applyRequest returns the apply of obj.
func (a resourceView) applyRequest(obj Object, options []ApplyOption) (*Request, error) {
	switch {
	case a.subresource != "" && a.subresource != "status":
		return nil, fmt.Errorf("apply %s/%s %s: only the whole object and its status can be applied: use Patch or Replace",
			a.resource, a.subresource, quoted(obj.GetNamespace(), obj.GetName()))
	case a.subresource != "":
		return a.applyStatusRequest(obj, obj.GetResourceVersion(), options)
	case len(obj.GetManagedFields()) > 0:
		return nil, a.errWasRead(obj, "managedFields")
	case obj.GetCreationTimestamp() != (metav1.Time{}):
		return nil, a.errWasRead(obj, "a creationTimestamp")
	}
	body, err := a.client.prune.applyBody(obj, a.resource, !a.statusApart)
	return a.newApply(obj, obj.GetResourceVersion(), body, err, options)
}

// applyStatusRequest returns the apply of the status of obj to that resource version.
func (a resourceView) applyStatusRequest(obj Object, resourceVersion string, options []ApplyOption) (*Request, error) {
	body, err := a.client.prune.statusBody(obj, a.resource, resourceVersion)
	return a.newApply(obj, resourceVersion, body, err, options)
}

// newApply returns the apply of a body, or why there is none.
func (a resourceView) newApply(obj Object, resourceVersion string, body []byte, err error, options []ApplyOption) (*Request, error) {
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", a.resource, quoted(obj.GetNamespace(), obj.GetName()), err)
	}
	r := a.request(VerbPatch, obj.GetName())
	query, o := a.applyQuery(options)
	r.Query, r.ContentType, r.Body, r.Adopt = query, ContentApply, body, o.adopt
	r.Preconditions = Preconditions{UID: obj.GetUID(), ResourceVersion: resourceVersion}
	return r, nil
}

func (a resourceView) errWasRead(obj Object, has string) error {
	return fmt.Errorf("apply %s %s: the object was read, because it has %s: an apply of it would take over the fields of all managers: build a new object with the fields to declare",
		a.resource, quoted(obj.GetNamespace(), obj.GetName()), has)
}

// Apply declares t in its own namespace. See [API.Apply].
func Apply[T any, P ObjectOf[T]](ctx context.Context, c *Client, t *T, options ...ApplyOption) (*T, error) {
	return All[T, P](c).Apply(ctx, t, options...)
}
