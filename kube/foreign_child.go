package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube/wire"
)

// ErrForeignChild is wrapped by the error of an apply that was refused because it would have made somebody else's
// object a child. The apply was not sent. See [Adopt].
var ErrForeignChild = errors.New("the object exists and is not its child")

// childGuardHandler is a handler that reports whether it, or a handler below it, refuses applies to foreign children.
// It is the outermost handler of the client of a reconcile: requestRecorder of package controller implements it. A
// client with another outermost handler calls [guardChild].
type childGuardHandler interface{ HasChildGuard() bool }

// guardChild checks the apply r of obj. If obj has a controlling owner and [Adopt] is not given, the current object
// must name that owner in an owner reference, or have fields of the same field manager, or not exist. guardChild
// changes r to be for exactly the object that it has found. The garbage collector would delete a foreign object
// together with the owner.
//
// For example, the WebApp with uid 7 applies the Deployment "shop" as "webapp". If no Deployment "shop" exists, r only
// creates. If the current one has uid 3 and names the WebApp, r is for uid 3. If nobody but "helm" has fields in the
// current one, the result is ErrForeignChild.
//
// Two other guards check applies: package controller/internal/adoption checks the applies of reconciles, and labelGuard
// of package operator checks applies with an owner in a label.
func guardChild(ctx context.Context, h wire.Handler, r *wire.Request, obj Object) error {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || r.Adopt || r.Preconditions != (wire.Preconditions{}) || r.Subresource != "" {
		return nil
	}
	response, err := h.Do(ctx, &wire.Request{
		Verb: wire.VerbGet, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name, Representation: wire.MetadataOnly,
	})
	var current metav1.PartialObjectMetadata
	if err == nil {
		err = Unmarshal(response.Body, &current)
	}
	member, value := "uid", string(current.UID)
	switch {
	case IsNotFound(err):
		member, value = "resourceVersion", ident.NeverVersion
		r.Preconditions.ResourceVersion = value
	case err != nil:
		return fmt.Errorf("apply %s: find out whether it is a child of %s %q: %w", r.Ref(), owner.Kind, owner.Name, err)
	case !mayBecomeChild(&current, owner.UID, r.Query.Get("fieldManager")):
		return fmt.Errorf("apply %s for %s %q: %w: it has no owner reference to it, and no field of the field manager %q: choose another name, or pass kube.Adopt() to Apply to adopt it",
			r.Ref(), owner.Kind, owner.Name, ErrForeignChild, r.Query.Get("fieldManager"))
	default:
		r.Preconditions.UID = current.UID
	}
	if r.Body, err = jsonscan.WithMetadata(r.Body, member, value); err != nil {
		return fmt.Errorf("apply %s: %w", r.Ref(), err)
	}
	return nil
}

// mayBecomeChild reports whether an object names an owner in any owner reference, or may become its child without harm:
// the field manager has fields in the object, and nobody else controls the object.
func mayBecomeChild(current *metav1.PartialObjectMetadata, owner types.UID, manager string) bool {
	hasFields := slices.ContainsFunc(current.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Subresource == ""
	})
	hasOtherController := false
	for _, o := range current.OwnerReferences {
		if o.UID == owner {
			return true
		}
		hasOtherController = hasOtherController || o.Controller != nil && *o.Controller
	}
	return hasFields && !hasOtherController
}
