package ctrl

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// form is how a program sees the objects of a kind.
type form int

const (
	typed form = iota
	unstructuredForm
	metadataForm
)

// formOf returns the form of an object or of a list.
func formOf(object runtime.Object) form {
	switch object.(type) {
	case runtime.Unstructured:
		return unstructuredForm
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadataForm
	}
	return typed
}

// kindID identifies the objects of an informer.
type kindID struct {
	gvk  schema.GroupVersionKind
	form form
}

// idOf returns the kindID of an object, or of the items of a list.
func idOf(object runtime.Object, scheme *runtime.Scheme) (kindID, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return kindID{}, err
	}
	if meta.IsListType(object) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	return kindID{gvk, formOf(object)}, nil
}

// kind knows how to read and decode the objects of a kind.
type kind struct {
	kindID
	scheme   *runtime.Scheme
	resource wire.Resource
	scope    meta.RESTScopeName
}

// newKind finds the resource of a kind.
func newKind(id kindID, scheme *runtime.Scheme, mapper meta.RESTMapper) (kind, error) {
	mapping, err := mapper.RESTMapping(id.gvk.GroupKind(), id.gvk.Version)
	if err != nil {
		return kind{}, err
	}
	r := wire.Resource{
		GroupVersionKind: id.gvk, Plural: mapping.Resource.Resource, ClusterScoped: mapping.Scope.Name() == meta.RESTScopeNameRoot,
	}
	return kind{kindID: id, scheme: scheme, resource: r, scope: mapping.Scope.Name()}, nil
}

// representation returns how much of the objects the cache keeps.
func (k kind) representation() wire.Representation {
	if k.form == metadataForm {
		return wire.MetadataOnly
	}
	return wire.Full
}

// newObject returns an empty object.
func (k kind) newObject() (client.Object, error) {
	switch k.form {
	case unstructuredForm:
		return new(unstructured.Unstructured), nil
	case metadataForm:
		return new(metav1.PartialObjectMetadata), nil
	}
	made, err := k.scheme.New(k.gvk)
	if err != nil {
		return nil, err
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object: it has no metadata", made)
	}
	return object, nil
}

// decode returns the object that its JSON stands for, with its kind.
func (k kind) decode(text []byte) (client.Object, error) {
	object, err := k.newObject()
	if err != nil {
		return nil, err
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		err = kube.Unmarshal(text, &u.Object)
	} else {
		err = kube.Unmarshal(text, object)
	}
	if err != nil {
		return nil, fmt.Errorf("decode an object of %s: %w", k.gvk, err)
	}
	// The items of a list and partial metadata do not have their kind.
	object.GetObjectKind().SetGroupVersionKind(k.gvk)
	return object, nil
}

// index is a function of controller-runtime as an index of yare.
type index struct {
	kind   kind
	field  string
	values client.IndexerFunc
}

// String returns the name of the field.
func (x *index) String() string { return x.field }

// Check returns an error unless the index can be used for the objects of r.
func (x *index) Check(r wire.Resource, representation wire.Representation) error {
	if r != x.kind.resource || representation != wire.Full {
		return fmt.Errorf("the index %q is for whole objects of %s, and not for those of %s", x.field, x.kind.resource, r)
	}
	return nil
}

// Values returns the values of an object. If the function panics, Values returns an error.
func (x *index) Values(object []byte) (values []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the function of the index %q panicked: %v", x.field, p)
		}
	}()
	decoded, err := x.kind.decode(object)
	if err != nil {
		return nil, err
	}
	return x.values(decoded), nil
}
