package kube

import (
	"cmp"
	"fmt"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// target is what the requests of an [API] are about: the objects of one resource, or one subresource of
// them. Its methods check input and make requests. They send nothing.
type target struct {
	resource wire.Resource
	// namespace is empty for all namespaces, and for resources outside of namespaces.
	namespace      string
	subresource    string
	representation wire.Representation
	// hasStatus is true for a type with a status.
	hasStatus bool
	// hasStatusSubresource is true if the resource is known to have a status subresource. Then a write of
	// the object leaves the status alone.
	hasStatusSubresource bool
	// sendsStatus is true if an apply of the object sends its status, because the resource is not known to have a status
	// subresource, and discovery has been asked.
	sendsStatus bool
	// err is what is wrong with the type, the client, the namespace or the subresource.
	err error
}

// in returns t in a namespace of the server of c, or in all namespaces of c if namespace is empty. The
// namespace of t is empty.
func (t target) in(c *Client, namespace string) target {
	t.namespace = namespace
	r := t.resource
	switch {
	case t.err != nil:
	case c == nil:
		t.err = fmt.Errorf("%s: the client is nil", r)
	case r.ClusterScoped && namespace != "":
		t.err = fmt.Errorf("%s live outside of namespaces, so there are none in %q: use kube.Everywhere", r, namespace)
	case namespace != "":
		t.err = checkSegment("namespace", namespace)
	case !r.ClusterScoped:
		t.err = c.scope.err
	}
	return t
}

// inNamespaceOf returns t in the namespace of obj, or an error if obj is not one of the objects of t.
func (t target) inNamespaceOf(verb wire.Verb, obj Object) (target, error) {
	if t.err != nil {
		return t, t.err
	}
	namespace := obj.GetNamespace()
	switch {
	case t.resource.ClusterScoped && namespace != "":
		return t, fmt.Errorf("%s %s %q: it lives outside of namespaces but has the namespace %q",
			verb, t.resource, obj.GetName(), namespace)
	case t.namespace == "":
		t.namespace = namespace
	case namespace != "" && namespace != t.namespace:
		return t, fmt.Errorf("%s %s %s: it is not in the namespace %q",
			verb, t.resource, ident.Quoted(namespace, obj.GetName()), t.namespace)
	}
	if t.namespace == "" && !t.resource.ClusterScoped {
		return t, fmt.Errorf("%s %s %q: it has no namespace", verb, t.resource, obj.GetName())
	}
	if t.namespace != "" {
		if err := checkSegment("namespace", t.namespace); err != nil {
			return t, fmt.Errorf("%s %s %q: %w", verb, t.resource, obj.GetName(), err)
		}
	}
	return t, nil
}

// request returns a request for one object.
func (t target) request(verb wire.Verb, name string) *wire.Request {
	return &wire.Request{
		Verb: verb, Resource: t.resource, Namespace: t.namespace, Name: name,
		Subresource: t.subresource, Representation: t.representation,
	}
}

// applyRequest returns the apply of obj by the field manager of c.
func (t target) applyRequest(c *Client, obj Object, options []ApplyOption) (*wire.Request, error) {
	t, err := t.inNamespaceOf(wire.VerbPatch, obj)
	if err == nil {
		err = t.requireName(wire.VerbPatch, obj.GetName())
	}
	if err != nil {
		return nil, err
	}
	return newApplier(t, c).request(obj, options)
}

// createRequest returns the creation of obj by the field manager of c.
func (t target) createRequest(c *Client, obj Object, options []WriteOption) (*wire.Request, error) {
	if err := cmp.Or(t.rejectSubresource(wire.VerbCreate, obj.GetName()),
		t.rejectProjection(wire.VerbCreate, obj.GetName())); err != nil {
		return nil, err
	}
	t, err := t.inNamespaceOf(wire.VerbCreate, obj)
	if err != nil {
		return nil, err
	}
	if obj.GetName() == "" && obj.GetGenerateName() == "" && !isReview(t.resource) {
		return nil, fmt.Errorf("create %s: it has neither a name nor a generateName", t.resource)
	}
	r := t.request(wire.VerbCreate, "")
	r.Query = newWriteOptions(c.manager, options).query()
	r.Body, err = t.encode(obj)
	return r, err
}

// requireName returns an error unless t and the name together name one object.
func (t target) requireName(verb wire.Verb, name string) error {
	switch {
	case t.err != nil:
		return t.err
	case name == "":
		return fmt.Errorf("%s %s: the name is empty", verb, t.resource)
	case t.namespace == "" && !t.resource.ClusterScoped:
		return fmt.Errorf("%s %s %q: the namespace is missing: use kube.Namespaced", verb, t.resource, name)
	}
	if err := checkSegment("name", name); err != nil {
		return fmt.Errorf("%s %s: %w", verb, t.resource, err)
	}
	return t.rejectProjection(verb, name)
}

// rejectSubresource returns an error if t is a subresource, which can be read and changed, but neither
// created nor deleted.
func (t target) rejectSubresource(verb wire.Verb, name string) error {
	if t.err == nil && t.subresource != "" {
		return fmt.Errorf("%s %s/%s %q: this can be done to the whole object only", verb, t.resource, t.subresource, name)
	}
	return nil
}

// rejectProjection returns an error if t is read as a projection and verb would write it.
func (t target) rejectProjection(verb wire.Verb, name string) error {
	_, ok := t.representation.ProjectedFields()
	if !ok || !verb.IsWrite() || verb == wire.VerbDelete || verb == wire.VerbDeleteCollection {
		return nil
	}
	return fmt.Errorf("%s %s %q: the type is a projection, which lacks fields of the kind: write the whole type",
		verb, t.resource, name)
}

// encode returns the body of a write of obj, with its kind filled in. The kind goes into the
// JSON and not into a copy of the object, because a copy of an unstructured object is not deep enough. The
// same is true of an object that embeds a pointer.
func (t target) encode(obj Object) ([]byte, error) {
	data, err := Marshal(obj)
	if err == nil {
		data, err = withKind(data, t.resource)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", t.resource, ident.Quoted(obj.GetNamespace(), obj.GetName()), err)
	}
	return data, nil
}

// decoder returns the decoder of the objects of t. c may be nil.
func (t target) decoder(c *Client) objectDecoder {
	if c == nil {
		return objectDecoder{resource: t.resource, representation: t.representation}
	}
	return objectDecoder{c.scope.cluster, t.resource, t.representation, c.decoder}
}

// streams returns the streams of the objects of t that selectors select.
func (t target) streams(c *Client, selectors []Selector) ([]wire.Stream, error) {
	if t.err != nil {
		return nil, t.err
	}
	return c.scope.streams(t, selectors)
}

// isReview reports whether the objects of the resource are questions to the server, such as a
// SubjectAccessReview. A create asks the question. A review has no name.
func isReview(r wire.Resource) bool {
	return r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io"
}

// checkResource returns an error unless r has what requests need.
func checkResource(r wire.Resource) error {
	if r.Version == "" || r.Kind == "" || r.Plural == "" {
		return fmt.Errorf("the resource %+v is not complete: it needs Version, Kind and Plural", r)
	}
	return nil
}
