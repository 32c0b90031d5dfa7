package operator

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// labelGuard is a handler that refuses an apply if the apply would make somebody else's object a child by a label of
// controller.OwnsByLabel. It serves the clients of tasks and handlers, whose package kube does not know the labels. Two
// other guards check applies: guardChild of package kube checks applies with a controlling owner, and package
// controller/internal/adoption checks the applies of reconciles. Package adoption names the child in the preconditions
// of the apply, and labelGuard passes an apply with preconditions on.
//
// For example, the label is "owner". A task applies the ConfigMap "shop" with owner=7 as "webapp". What labelGuard does
// depends on the live ConfigMap "shop":
//
//	owner     fields of webapp   the apply
//	(none exists)                can only create the ConfigMap
//	7         any                is sent, for the uid of the live ConfigMap
//	9         any                is refused
//	no label  some               is sent, for the uid of the live ConfigMap
//	no label  none               is refused without kube.Adopt
type labelGuard struct {
	next wire.Handler
	// labels are the labels of controller.OwnsByLabel in all parts of the program.
	labels []string
}

// Do serves one request.
func (g *labelGuard) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	isApply := r.Verb == wire.VerbPatch && r.ContentType == wire.ContentApply && r.Subresource == ""
	if !isApply || r.Preconditions != (wire.Preconditions{}) {
		return g.next.Do(ctx, r)
	}
	var applied metav1.PartialObjectMetadata
	if err := kube.Unmarshal(r.Body, &applied); err != nil || !g.hasOwner(applied.Labels) {
		return g.next.Do(ctx, r) // the server refuses a body that is no object
	}
	live, err := g.liveMetadata(ctx, r)
	guarded := *r
	member, value := "uid", string(live.UID)
	switch {
	case kube.IsNotFound(err):
		member, value = "resourceVersion", ident.NeverVersion
		guarded.Preconditions.ResourceVersion = value
	case err != nil:
		return nil, fmt.Errorf("apply %s: find out whether it is a child: %w", r.Ref(), err)
	default:
		if err := g.checkChild(r, &applied, &live); err != nil {
			return nil, err
		}
		guarded.Preconditions.UID = live.UID
	}
	if guarded.Body, err = jsonscan.WithMetadata(r.Body, member, value); err != nil {
		return nil, fmt.Errorf("apply %s: %w", r.Ref(), err)
	}
	return g.next.Do(ctx, &guarded)
}

// hasOwner reports whether one of the guarded labels has a value in values.
func (g *labelGuard) hasOwner(values map[string]string) bool {
	return slices.ContainsFunc(g.labels, func(label string) bool { return values[label] != "" })
}

// liveMetadata returns the metadata of the live object that r applies.
func (g *labelGuard) liveMetadata(ctx context.Context, r *wire.Request) (live metav1.PartialObjectMetadata, err error) {
	response, err := g.next.Do(ctx, &wire.Request{
		Cluster: r.Cluster, Verb: wire.VerbGet, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name,
		Representation: wire.MetadataOnly, // no cache is below
	})
	if err == nil {
		err = kube.Unmarshal(response.Body, &live)
	}
	return live, err
}

// checkChild returns an error unless the live object is a child of the owner that applied names, or becomes its child
// without harm.
func (g *labelGuard) checkChild(r *wire.Request, applied, live *metav1.PartialObjectMetadata) error {
	isChild := false
	for _, label := range g.labels {
		switch uid, owner := live.Labels[label], applied.Labels[label]; {
		case owner == "" || uid == "":
		case uid == owner:
			isChild = true
		default:
			return fmt.Errorf(
				"apply %s: %w: by its label %s it belongs to the uid %s: choose another name, or remove that label first",
				r.Ref(), kube.ErrForeignChild, label, uid)
		}
	}
	if isChild {
		return nil
	}
	if o := metav1.GetControllerOfNoCopy(live); o != nil {
		return fmt.Errorf("apply %s: %w: %s %q controls it: choose another name, or remove that owner reference first",
			r.Ref(), kube.ErrForeignChild, o.Kind, o.Name)
	}
	manager := r.Query.Get("fieldManager")
	isWritten := slices.ContainsFunc(live.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Subresource == ""
	})
	if r.Adopt || isWritten {
		return nil
	}
	return fmt.Errorf("apply %s: %w: it has no label with the uid of the owner, and no field of the field manager %q: choose another name, or pass kube.Adopt() to Apply to adopt it",
		r.Ref(), kube.ErrForeignChild, manager)
}
