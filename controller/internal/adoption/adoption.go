// Package adoption protects objects that somebody else made. A reconcile cannot make such an
// object a child of the reconciled object, unless the author asks for that. The garbage collector
// would delete the object together with its owner.
//
// A [Guard] checks each apply whose body has a controlling owner reference to the reconciled
// object, or its uid in a label of controller.OwnsByLabel. The reconciled object then is the owner.
// The current object of that name decides:
//
//   - An object that another owner controls is refused, also with [kube.Adopt].
//   - An object that an earlier owner of the same group, kind and name controls is about to
//     be deleted by the garbage collector. The apply is refused with a conflict, which is
//     retried quietly until the object is gone. If the field managers of this controller
//     have not written the object since its creation, it came from a backup, together with
//     the owner that has a new uid: then its reference is corrected.
//   - An object whose label of controller.OwnsByLabel has the uid of another owner belongs to that owner. The
//     object is refused, also with kube.Adopt, while that owner exists. If no object has the uid, kube.Adopt
//     takes the object over. If the object came from a backup, it is corrected without kube.Adopt. If the
//     controller watches a part of its kind only, it does not know whether the owner exists. Then only
//     kube.Adopt takes the object over.
//   - An object is a child if an owner reference names the owner or an earlier owner, if a label
//     has the uid of the owner, or if a field manager of this controller has fields in it, as
//     after a deletion of an owner that left its children behind (kubectl delete
//     --cascade=orphan).
//   - Every other object is refused, unless the apply has [kube.Adopt].
//
// An example. The WebApp "shop" with uid 7 applies the Deployment "shop" as the field manager
// "webapp". What the Guard does with the apply depends on the current Deployment "shop":
//
//	controlled by          fields of webapp        the apply
//	nobody: none exists                            creates the Deployment
//	WebApp "shop", uid 7   any                     is sent
//	WebApp "blog", uid 9   any                     is refused
//	WebApp "shop", uid 3   since its creation      is a conflict, until the Deployment is gone
//	WebApp "shop", uid 3   older, or none          is sent, after uid 3 was replaced by uid 7
//	nobody                 some                    is sent
//	nobody                 none                    is refused without kube.Adopt
//
// The decision still holds when the apply arrives, because the apply names the uid of the child. If no object
// exists, the apply names a resourceVersion that no object ever has. The server ignores that version if it
// creates the object, and refuses the apply with a conflict if it finds one. Then the decision is made again,
// by a live read. One race remains: between the decision and the apply, somebody may change the owner
// references or managedFields of the same object.
//
// Two other guards check the applies of clients outside of reconciles: guardChild of package kube for owner references,
// and labelGuard of package operator for labels.
package adoption

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Guard refuses the applies of one controller that would take over an object. It is safe for
// concurrent use.
type Guard struct {
	view View
	// ownerExistence returns whether the owner exists whose uid a label has.
	ownerExistence OwnerExistence
	// formerManagers holds the former field managers of the controller, and labels holds the labels of
	// controller.OwnsByLabel.
	formerManagers, labels []string

	mu sync.Mutex
	// children holds the children that no cache shows.
	children map[wire.Ref]child
}

// View is the cache as the controller may see it: see [cache.View].
type View interface {
	KnownState(ref wire.Ref) cache.KnownState
}

// OwnerExistence returns what is known of the existence of an object of the reconciled kind with a uid.
type OwnerExistence func(cluster string, uid types.UID) Existence

// Existence is what is known of the existence of an object.
type Existence int

const (
	// Unknown means that the object may exist where the controller does not watch.
	Unknown Existence = iota
	// Exists means that the object exists.
	Exists
	// Gone means that no object of the reconciled kind has the uid.
	Gone
)

// child is an object that is known to be a child, and its owner.
type child struct{ uid, owner types.UID }

// NewGuard returns a Guard that finds current objects in view, and asks ownerExistence about their owners by label.
func NewGuard(view View, ownerExistence OwnerExistence, formerManagers, labels []string) *Guard {
	return &Guard{
		view: view, ownerExistence: ownerExistence, formerManagers: formerManagers, labels: labels,
		children: make(map[wire.Ref]child),
	}
}

// maxRemembered limits the memory of a Guard and of a Mover. A forgotten object costs one read.
const maxRemembered = 4096

// maxAttempts is how often an apply is decided, and how often a move before it is tried, when the object changes
// meanwhile.
const maxAttempts = 3

// Handler returns a handler for the reconcile of owner. It belongs after the no-op check: an apply
// that would change nothing needs no decision. A decision costs one request if no cache shows the
// child. The handler then remembers the decision for the uid of the child.
//
// makeNextReadLive makes the next read of an object live. It may be nil.
func (g *Guard) Handler(next wire.Handler, owner wire.Ref, makeNextReadLive func(wire.Ref)) wire.Handler {
	return &handler{guard: g, next: next, makeNextReadLive: makeNextReadLive, owner: owner}
}

// handler passes on the applies that the guard does not refuse.
type handler struct {
	guard *Guard
	next  wire.Handler
	owner wire.Ref
	// makeNextReadLive makes the next read of the owner live. It may be nil.
	makeNextReadLive func(wire.Ref)
}

// Do serves one request.
func (h *handler) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if r.Verb != wire.VerbPatch || r.ContentType != wire.ContentApply || r.Subresource != "" {
		return h.next.Do(ctx, r)
	}
	owner := h.owner
	if !hasController(r.Body, owner.UID) && !hasOwnerLabel(r.Body, owner.UID, h.guard.labels) {
		return h.next.Do(ctx, r)
	}
	for attempt := 1; ; attempt++ {
		d, err := h.guard.decide(ctx, h.next, r, owner, attempt > 1 || r.Live)
		if err != nil {
			return nil, err
		}
		if attempt > 1 && d.uid == "" && h.makeNextReadLive != nil {
			if err := h.checkOwnerExists(ctx, r, owner); err != nil {
				return nil, err
			}
		}
		if err = d.replaceOwner(ctx, h.next, r, owner); err == nil {
			var response *wire.Response
			if response, err = d.send(ctx, h.next, r); err == nil {
				h.guard.recordChild(r, owner, d, response)
				return response, nil
			}
		}
		if !isOutdated(err) || attempt == maxAttempts || r.Preconditions != (wire.Preconditions{}) {
			return nil, err
		}
	}
}

// checkOwnerExists returns a conflict if the owner is gone. It is called if the child has vanished between two
// decisions: the garbage collector deletes the children of an owner that is gone.
func (h *handler) checkOwnerExists(ctx context.Context, r *wire.Request, owner wire.Ref) error {
	h.makeNextReadLive(owner)
	response, err := h.next.Do(ctx, &wire.Request{
		Cluster: owner.Cluster, Verb: wire.VerbGet, Resource: owner.Resource, Namespace: owner.Namespace, Name: owner.Name,
		Representation: wire.MetadataOnly,
	})
	var current metav1.PartialObjectMetadata
	if err == nil {
		err = kube.Unmarshal(response.Body, &current)
	}
	if err != nil && !kube.IsNotFound(err) || current.UID == owner.UID {
		return err
	}
	return conflict(r, fmt.Sprintf("its owner, the %s %q, is gone", owner.Resource.Kind, owner.Name))
}

// isOutdated reports whether a request was refused because the object is not the object of the
// decision.
func isOutdated(err error) bool {
	e, ok := kube.AsError(err)
	return ok && (kube.IsConflict(err) && !kube.IsApplyConflict(err) || kube.IsUIDConflict(e))
}

// Forget drops the decisions about children that no cache shows.
func (g *Guard) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.children)
}

// decision is about an apply that may be sent.
type decision struct {
	// uid is the uid of the child. It is empty if no object of that name exists.
	uid types.UID
	// isCached is true if a cache shows the child.
	isCached bool
	// earlierIndex is the index of the owner reference to an earlier owner, which must be corrected first.
	// earlierUID is the uid in it, or empty if there is no such reference.
	earlierIndex int
	earlierUID   types.UID
}

// decide finds the child of r, and returns an error if r must not be sent. With mustRead, neither the
// cache nor an earlier decision counts.
func (g *Guard) decide(
	ctx context.Context, next wire.Handler, r *wire.Request, owner wire.Ref, mustRead bool,
) (decision, error) {
	ref := childRef(r)
	var metadata []byte
	var err error
	known := g.view.KnownState(ref)
	switch {
	case known.IsCertain && !mustRead:
		if !known.IsPresent {
			return decision{isCached: true}, nil
		}
		if isOwnedBy(known.Record.Owners, owner) {
			return decision{uid: known.Record.UID, isCached: true}, nil
		}
		metadata, err = known.Metadata()
	default:
		if child, ok := g.child(ref); ok && !mustRead && child.owner == owner.UID {
			return decision{uid: child.uid}, nil
		}
		var response *wire.Response
		response, err = next.Do(ctx, &wire.Request{
			Cluster: r.Cluster, Verb: wire.VerbGet, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name,
			Representation: wire.MetadataOnly, Live: r.Live || mustRead,
		})
		if kube.IsNotFound(err) {
			return decision{isCached: known.IsCertain}, nil
		}
		if err == nil {
			metadata = response.Body
		}
	}
	if kube.IsForbidden(err) {
		err = fmt.Errorf("%w: a controller declares its children by controller.Owns", err)
	}
	if err != nil {
		return decision{}, fmt.Errorf("apply %s: find out whether it is a child of %s: %w", r.Ref(), owner, err)
	}
	var object metav1.PartialObjectMetadata
	if err := kube.Unmarshal(metadata, &object); err != nil {
		return decision{}, fmt.Errorf("apply %s: find out whether it is a child of %s: %w", r.Ref(), owner, err)
	}
	d, err := g.decideByMetadata(&object.ObjectMeta, r, owner)
	d.isCached = known.IsCertain
	return d, err
}

// decideByMetadata returns the decision about an apply to object, or an error if the apply must not be
// sent.
func (g *Guard) decideByMetadata(object *metav1.ObjectMeta, r *wire.Request, owner wire.Ref) (decision, error) {
	// isChild is true if an owner reference or a label makes object a child. Fields of a field manager do not count here.
	isChild := labelsNameOwner(object.Labels, owner.UID, g.labels)
	earlier := -1 // the index of the reference to an earlier owner
	for i, o := range object.OwnerReferences {
		switch isEarlier, controls := isEarlierOwner(o, owner), o.Controller != nil && *o.Controller; {
		case o.UID == owner.UID:
			isChild = true
		case isEarlier && controls:
			earlier = i
		case isEarlier:
			isChild = true
		case controls:
			return decision{}, fmt.Errorf(
				"apply %s for %s: %w: %s %q controls it: choose another name, or remove that owner reference first",
				r.Ref(), owner, kube.ErrForeignChild, o.Kind, o.Name)
		}
	}
	switch {
	case earlier >= 0 && (isChild || object.DeletionTimestamp != nil || g.hasWrittenSinceCreation(r, object)):
		return decision{}, earlierOwnerConflict(r, owner)
	case earlier >= 0:
		return decision{uid: object.UID, earlierIndex: earlier, earlierUID: object.OwnerReferences[earlier].UID}, nil
	case !isChild:
		if err := g.checkOwnerLabels(object, r, owner); err != nil {
			return decision{}, err
		}
	}
	if isChild || r.Adopt || g.hasWritten(r, object) {
		return decision{uid: object.UID}, nil
	}
	return decision{}, fmt.Errorf("apply %s for %s: %w: it has no owner reference to it or label with its uid, and no field of the field manager %q: choose another name, or pass kube.Adopt() to Apply to adopt it; if the field manager was renamed, name the former one with controller.FormerFieldManagers",
		r.Ref(), owner, kube.ErrForeignChild, r.Query.Get("fieldManager"))
}

// checkOwnerLabels returns an error if a label has the uid of another owner, to whom the object belongs.
func (g *Guard) checkOwnerLabels(object *metav1.ObjectMeta, r *wire.Request, owner wire.Ref) error {
	for _, label := range g.labels {
		uid := types.UID(object.Labels[label])
		if uid == "" || uid == owner.UID {
			continue
		}
		existence := g.ownerExistence(owner.Cluster, uid)
		isFromBackup := g.hasWritten(r, object) && !g.hasWrittenSinceCreation(r, object)
		switch {
		case existence == Exists:
			return fmt.Errorf(
				"apply %s for %s: %w: by its label %s it belongs to another %s, which has the uid %s: choose another name",
				r.Ref(), owner, kube.ErrForeignChild, label, owner.Resource.Kind, uid)
		case !r.Adopt && !(existence == Gone && isFromBackup):
			return fmt.Errorf("apply %s for %s: %w: by its label %s it belongs to the uid %s: choose another name, or pass kube.Adopt() to Apply if that owner is gone",
				r.Ref(), owner, kube.ErrForeignChild, label, uid)
		}
	}
	return nil
}

// hasWritten reports whether the field manager of r has fields in the object, or a former one has applied the object.
// A program of controller-runtime's scaffold updates its objects as "manager". So an update under such a name proves
// nothing.
func (g *Guard) hasWritten(r *wire.Request, object *metav1.ObjectMeta) bool {
	return slices.ContainsFunc(object.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return g.isWrite(r, e) })
}

// hasWrittenSinceCreation reports whether the sender of r has an entry in the managed fields of the object that is not
// older than the object. An older entry came with the object from a backup.
func (g *Guard) hasWrittenSinceCreation(r *wire.Request, object *metav1.ObjectMeta) bool {
	return slices.ContainsFunc(object.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return g.isWrite(r, e) && !e.Time.Before(&object.CreationTimestamp)
	})
}

// isWrite reports whether e has fields of the field manager of r, or fields that a former one has applied.
func (g *Guard) isWrite(r *wire.Request, e metav1.ManagedFieldsEntry) bool {
	isOurs := e.Manager == r.Query.Get("fieldManager") ||
		e.Operation == metav1.ManagedFieldsOperationApply && slices.Contains(g.formerManagers, e.Manager)
	return isOurs && e.Subresource == "" && e.FieldsV1 != nil && len(e.FieldsV1.GetRawBytes()) > len("{}")
}

// earlierOwnerConflict returns the refusal of an apply to a child of an earlier owner. An apply
// by the same field manager would replace the owner, and the new owner would inherit the child.
func earlierOwnerConflict(r *wire.Request, owner wire.Ref) error {
	return conflict(r, fmt.Sprintf("it belongs to an earlier %s %q, with which it is about to be deleted",
		owner.Resource.Kind, owner.Name))
}

// conflict returns the refusal of an apply that may succeed later.
func conflict(r *wire.Request, message string) error {
	return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusConflict, Answer: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: message,
	}}
}

// replaceOwner corrects the reference to an earlier owner.
func (d decision) replaceOwner(ctx context.Context, next wire.Handler, r *wire.Request, owner wire.Ref) error {
	if d.earlierUID == "" {
		return nil
	}
	path := fmt.Sprintf("/metadata/ownerReferences/%d/uid", d.earlierIndex)
	body, err := kube.Marshal([]kube.PatchOperation{
		kube.TestAt("/metadata/uid", d.uid), kube.TestAt(path, d.earlierUID), kube.ReplaceAt(path, owner.UID),
	})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	patch := *r
	patch.ContentType, patch.Body, patch.Preconditions = wire.ContentJSONPatch, body, wire.Preconditions{}
	patch.Query = nil
	if manager := r.Query.Get("fieldManager"); manager != "" {
		patch.Query = map[string][]string{"fieldManager": {manager}}
	}
	_, err = next.Do(ctx, &patch)
	if kube.IsInvalid(err) || kube.IsNotFound(err) {
		// A test failed: the object has changed.
		return earlierOwnerConflict(r, owner)
	}
	return err
}

// send sends r for exactly the object of the decision.
func (d decision) send(ctx context.Context, next wire.Handler, r *wire.Request) (*wire.Response, error) {
	if r.Preconditions != (wire.Preconditions{}) {
		return next.Do(ctx, r) // the author's own preconditions name the object
	}
	conditional := *r
	member, value := "uid", string(d.uid)
	if d.uid == "" {
		member, value = "resourceVersion", ident.NeverVersion
		conditional.Preconditions.ResourceVersion = value
	} else {
		conditional.Preconditions.UID = d.uid
	}
	var err error
	if conditional.Body, err = jsonscan.WithMetadata(r.Body, member, value); err != nil {
		return nil, fmt.Errorf("apply %s: %w", r.Ref(), err)
	}
	return next.Do(ctx, &conditional)
}

// childRef returns the object that r is about, without a uid.
func childRef(r *wire.Request) wire.Ref {
	ref := r.Ref()
	ref.UID = ""
	return ref
}

func (g *Guard) child(ref wire.Ref) (child, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.children[ref]
	return known, ok
}

// recordChild records a child that no cache shows.
func (g *Guard) recordChild(r *wire.Request, owner wire.Ref, d decision, response *wire.Response) {
	if d.isCached || r.Query.Get("dryRun") != "" {
		return
	}
	if d.uid == "" {
		var created metav1.PartialObjectMetadata
		if kube.Unmarshal(response.Body, &created) != nil {
			return
		}
		d.uid = created.UID
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.children) >= maxRemembered {
		clear(g.children)
	}
	g.children[childRef(r)] = child{d.uid, owner.UID}
}
