package adoption

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/jsonscan/fieldset"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Mover moves the ownership of fields from former field managers to the field manager of a controller. Without the
// move both would own a field that the controller applies, and a field that the controller does not apply any more
// would stay for ever.
//
// A Mover changes managedFields before an apply, and only in two cases:
//
//   - The object of the apply is a child of the reconciled object: an owner reference or a label of
//     controller.OwnsByLabel has its uid. Then the entries of the main resource move.
//   - The apply is about the status of the reconciled object. Then the entries of the status move.
//
// An example. An earlier release has updated the Deployment "shop" as "manager". The controller applies
// {spec: {paused: true}} as "webapp". The entries in managedFields are
//
//	                before the move                         after the move
//	manager         f:spec: {f:paused, f:replicas},         f:metadata: {f:labels: {f:team}}
//	                f:metadata: {f:labels: {f:team}}
//	webapp (Apply)  none                                    f:spec: {f:paused, f:replicas}
//
// The apply then removes spec.replicas, because webapp owns that field alone and does not apply it. The Mover logs such
// fields, once for each kind. The label team stays with manager, because the apply does not name it.
//
// What stays with the former field manager: finalizers, owner references to other objects, the entries of other
// subresources, the entries of other API versions, and the labels and annotations of an update that the apply does not
// name, unless their keys have a prefix in prefixes.
type Mover struct {
	view View
	log  *slog.Logger
	// former holds the former field managers, and labels holds the labels of controller.OwnsByLabel.
	former, labels []string
	// prefixes holds the prefixes of the keys of labels and annotations that move from an update.
	prefixes []string

	mu sync.Mutex
	// checked holds the objects that have nothing to move.
	checked map[wire.Ref]checkedObject
	// logged holds what was logged: the move of a kind and subresource, or the fields of it that stay.
	logged map[string]bool
}

// checkedObject is an object that has nothing to move at a version. The version is empty if no cache shows the object.
type checkedObject struct {
	uid     types.UID
	version string
}

// NewMover returns a Mover from former field managers.
func NewMover(view View, log *slog.Logger, former, prefixes, labels []string) *Mover {
	return &Mover{
		view: view, log: log, former: former, prefixes: prefixes, labels: labels,
		checked: make(map[wire.Ref]checkedObject), logged: make(map[string]bool),
	}
}

// Handler returns a handler for the reconcile of owner. It belongs before the no-op check, which skips an apply that
// changes nothing but managedFields.
func (m *Mover) Handler(next wire.Handler, owner wire.Ref) wire.Handler {
	return &moveHandler{mover: m, next: next, owner: owner}
}

// Forget drops what is known about objects that have nothing to move.
func (m *Mover) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.checked)
}

// isUnchangedSinceCheck reports whether an object is at the version at which it was found to have nothing to move.
func (m *Mover) isUnchangedSinceCheck(ref wire.Ref, o checkedObject) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.checked[ref]
	return ok && known == o
}

// hasNothingToMove reports whether an object was found to have nothing to move. It is for an object that no cache
// shows, so that its version is not known.
func (m *Mover) hasNothingToMove(ref wire.Ref) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.checked[ref]
	return ok && known.version == ""
}

// recordChecked records that an object has nothing to move.
func (m *Mover) recordChecked(ref wire.Ref, o checkedObject) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.checked) >= maxRemembered {
		clear(m.checked)
	}
	m.checked[ref] = o
}

// isFormer reports whether an entry of managedFields belongs to a former field manager.
func (m *Mover) isFormer(e *metav1.ManagedFieldsEntry, manager, subresource string) bool {
	isOwn := e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply
	return !isOwn && e.Subresource == subresource && slices.Contains(m.former, e.Manager)
}

// moveHandler moves ownership before the applies of one reconcile.
type moveHandler struct {
	mover *Mover
	next  wire.Handler
	owner wire.Ref
}

// Do serves one request.
func (h *moveHandler) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if h.isConcerned(r) {
		for attempt := 1; ; attempt++ {
			err := h.moveOwnership(ctx, r, attempt > 1 || r.Live)
			if err == nil {
				break
			}
			if !isOutdated(err) || attempt == maxAttempts {
				return nil, err
			}
		}
	}
	return h.next.Do(ctx, r)
}

// isConcerned reports whether r is an apply before which ownership can move.
func (h *moveHandler) isConcerned(r *wire.Request) bool {
	if r.Verb != wire.VerbPatch || r.ContentType != wire.ContentApply || r.Query.Get("dryRun") != "" {
		return false
	}
	switch r.Subresource {
	case "":
		return hasController(r.Body, h.owner.UID) || hasOwnerLabel(r.Body, h.owner.UID, h.mover.labels)
	case "status":
		reconciled := h.owner
		reconciled.UID = ""
		return childRef(r) == reconciled
	default:
		return false
	}
}

// moveOwnership moves the ownership in the object of the apply r. With mustRead, the cache does not count.
func (h *moveHandler) moveOwnership(ctx context.Context, r *wire.Request, mustRead bool) error {
	ref := childRef(r)
	var metadata []byte
	var err error
	known := h.mover.view.KnownState(ref)
	switch {
	case known.IsCertain && !mustRead:
		if !known.IsPresent ||
			h.mover.isUnchangedSinceCheck(ref, checkedObject{known.Record.UID, known.Record.ResourceVersion}) {
			return nil
		}
		metadata, err = known.Metadata()
	case !known.IsCertain && !mustRead && h.mover.hasNothingToMove(ref):
		return nil
	default:
		var response *wire.Response
		response, err = h.next.Do(ctx, &wire.Request{
			Cluster: r.Cluster, Verb: wire.VerbGet, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name,
			Representation: wire.MetadataOnly, Live: true,
		})
		if kube.IsNotFound(err) {
			return nil
		}
		if err == nil {
			metadata = response.Body
		}
	}
	var object metav1.PartialObjectMetadata
	if err == nil {
		err = kube.Unmarshal(metadata, &object)
	}
	if err != nil {
		return fmt.Errorf("apply %s: find the fields of former field managers: %w", r.Ref(), err)
	}
	checked := checkedObject{uid: object.UID}
	if known.IsCertain {
		checked.version = object.ResourceVersion
	}
	if !h.belongsToOwner(&object.ObjectMeta, r) {
		return nil
	}
	move, err := h.mover.plan(&object.ObjectMeta, r, h.owner)
	if err != nil {
		return fmt.Errorf("apply %s: move the fields of former field managers: %w", r.Ref(), err)
	}
	h.mover.logKept(r, move.kept)
	if !move.isNeeded {
		if !move.isDeferred {
			h.mover.recordChecked(ref, checked)
		}
		return nil
	}
	if err := move.send(ctx, h.next, r); err != nil {
		if isOutdated(err) {
			return err
		}
		return fmt.Errorf("apply %s: move the fields of former field managers: %w", r.Ref(), err)
	}
	h.mover.logMove(r, move)
	return nil
}

// belongsToOwner reports whether the object of r belongs to the owner: an owner reference or an owner label has its
// uid, or the object is the owner.
func (h *moveHandler) belongsToOwner(object *metav1.ObjectMeta, r *wire.Request) bool {
	if r.Subresource != "" {
		return object.UID == h.owner.UID
	}
	return labelsNameOwner(object.Labels, h.owner.UID, h.mover.labels) ||
		slices.ContainsFunc(object.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == h.owner.UID })
}

// ownershipMove is a change of the managedFields of an object.
type ownershipMove struct {
	// isNeeded is true if a field moves.
	isNeeded bool
	// isDeferred is true if no field moves before the apply has converted the entry of its own field manager to
	// its API version. Fields of two API versions cannot be in one entry.
	isDeferred bool
	// version is the resource version that the move was planned for.
	version string
	entries []metav1.ManagedFieldsEntry
	// removed holds the paths of the fields that the apply removes.
	removed []string
	// kept holds the former field managers with an entry of another API version, which stays.
	kept []string
}

// plan returns the move before the apply r.
func (m *Mover) plan(object *metav1.ObjectMeta, r *wire.Request, owner wire.Ref) (*ownershipMove, error) {
	manager, apiVersion := r.Query.Get("fieldManager"), r.Resource.GroupVersion().String()
	filter, err := newMoveFilter(r.Body, owner.UID, m.prefixes)
	if err != nil {
		return nil, err
	}
	target := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, FieldsType: "FieldsV1",
		Subresource: r.Subresource,
	}
	owned, moved := make(fieldset.Set), make(fieldset.Set)
	move := &ownershipMove{version: object.ResourceVersion}
	var others []fieldset.Set
	for _, e := range object.ManagedFields {
		fields, err := fieldset.Decode(e.FieldsV1)
		if err != nil {
			return nil, fmt.Errorf("the entry of %s in managedFields: %w", e.Manager, err)
		}
		isTarget := e.Manager == manager && e.Operation == target.Operation && e.Subresource == target.Subresource
		isFormer := m.isFormer(&e, manager, r.Subresource)
		switch {
		case isTarget && e.APIVersion == apiVersion:
			target.Time = latest(target.Time, e.Time)
			owned.Add(fields)
			continue
		case isTarget:
			return &ownershipMove{isDeferred: true}, nil
		case isFormer && e.APIVersion != apiVersion:
			move.kept = append(move.kept, e.Manager)
		case isFormer:
			moving := filter.split(fields, e.Operation)
			if len(moving) == 0 {
				break
			}
			moved.Add(moving)
			target.Time = latest(target.Time, e.Time)
			if len(fields) == 0 {
				continue
			}
			if e.FieldsV1, err = fields.Encode(); err != nil {
				return nil, err
			}
		}
		others = append(others, fields)
		move.entries = append(move.entries, e)
	}
	if move.isNeeded = len(moved) > 0; !move.isNeeded {
		return move, nil
	}
	move.removed = missingPaths(moved, filter.body, others)
	owned.Add(moved)
	if target.FieldsV1, err = owned.Encode(); err != nil {
		return nil, err
	}
	move.entries = append(move.entries, target)
	return move, nil
}

// latest returns the later of two times, of which each may be nil.
func latest(a, b *metav1.Time) *metav1.Time {
	if a == nil || b != nil && a.Before(b) {
		return b
	}
	return a
}

// send sends the move, if the object still has the version that it was planned for. The patch goes to the main
// resource, because the API server ignores managedFields that are sent to a subresource.
func (m *ownershipMove) send(ctx context.Context, next wire.Handler, r *wire.Request) error {
	body, err := kube.Marshal([]kube.PatchOperation{
		kube.ReplaceAt("/metadata/managedFields", m.entries), kube.ReplaceAt("/metadata/resourceVersion", m.version),
	})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	patch := *r
	patch.Subresource, patch.ContentType, patch.Body, patch.Preconditions = "", wire.ContentJSONPatch, body,
		wire.Preconditions{ResourceVersion: m.version}
	patch.Query = map[string][]string{"fieldManager": {r.Query.Get("fieldManager")}}
	_, err = next.Do(ctx, &patch)
	if kube.IsNotFound(err) {
		return nil // the apply decides about an object that is gone
	}
	return err
}

// recordLine records a line of the log about a kind and subresource, and reports whether the line is new.
func (m *Mover) recordLine(line string) (isFirst bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	isFirst = !m.logged[line]
	m.logged[line] = true
	return isFirst
}

// logMove logs the first move of a kind.
func (m *Mover) logMove(r *wire.Request, move *ownershipMove) {
	if !m.recordLine("move " + r.Resource.String() + "/" + r.Subresource) {
		return
	}
	arguments := []any{
		"object", r.Ref(), "subresource", r.Subresource,
		"to", r.Query.Get("fieldManager"), "from", m.former, "removed", move.removed,
	}
	if slices.Contains(move.removed, "spec.replicas") {
		m.log.Warn("the fields of former field managers now belong to this controller, and the apply removes spec.replicas: it gets its default, unless the apply names it", arguments...)
		return
	}
	m.log.Info("the fields of former field managers now belong to this controller", arguments...)
}

// logKept logs the first entries of another API version of a kind.
func (m *Mover) logKept(r *wire.Request, managers []string) {
	if len(managers) > 0 && m.recordLine("kept "+r.Resource.String()+"/"+r.Subresource) {
		m.log.Warn("fields of former field managers stay with them, because they were written in another API version: "+
			"write the object once as that field manager in this version, or remove the entry",
			"object", r.Ref(), "managers", strings.Join(managers, " "))
	}
}
