package kube

import (
	"fmt"
	"reflect"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan/projection"
	"github.com/yare-go/yare/kube/wire"
)

// Projected is the interface of types with only some fields of a kind. With a projection a program watches
// many objects and keeps only the fields that it needs. Projection returns the kind.
//
//	type podPhase struct {
//		metav1.TypeMeta   `json:",inline"`
//		metav1.ObjectMeta `json:"metadata"`
//		Status            struct {
//			Phase corev1.PodPhase `json:"phase"`
//		} `json:"status"`
//	}
//
//	func (podPhase) Projection() (wire.Resource, error) { return kube.ResourceOf[corev1.Pod]() }
//
// A projection is read, listed, watched and cached in place of the whole type. The server still sends whole
// objects. The cache drops the other fields, and the managedFields. A cache of a projection answers no read
// of the whole type, and a cache of the whole type answers reads of every projection. Two projections with
// the same fields share one watch.
//
// A projection can be deleted. Every other write of a projection is an error: a replacement would
// remove the fields that the type lacks. An apply of the whole type to an object that only a
// projection shows is always sent.
type Projected interface {
	Object
	Projection() (wire.Resource, error)
}

// projectionOf returns the Type of a projection.
func projectionOf(t reflect.Type, p Projected) (Type, error) {
	r, err := p.Projection()
	if err != nil {
		return Type{}, fmt.Errorf("%s: the kind of the projection: %w", ident.GoTypeName(t), err)
	}
	if err := checkResource(r); err != nil {
		return Type{}, fmt.Errorf("%s: the kind of the projection: %w", ident.GoTypeName(t), err)
	}
	fields, err := projection.Of(t)
	if err != nil {
		return Type{}, fmt.Errorf("%s: %w", ident.GoTypeName(t), err)
	}
	return Type{Resource: r, Go: t, Representation: wire.Projection(fields.String())}, nil
}
