package cache

import (
	"slices"

	kubefields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/internal/cache/internal/database"
	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan/projection"
	"github.com/yare-go/yare/kube/wire"
)

// missedStates finds the states that one stream has missed: this program has read or written them, and
// neither the watch nor the list that follows it shows them. It belongs to the goroutine of the stream.
//
// Example: the watch of a stream ends at version 10. This program creates the object a, and the server
// answers with version 12. Somebody deletes a at version 13. The version 10 has expired, so the stream lists
// anew, at version 15. The store has never held a, and the list does not contain a. But the controller
// has decided by a, so the deletion of a must be published. The overlay has a at version 12, which is between
// 10 and 15, and so missedStates returns a.
type missedStates struct {
	store   *Store
	overlay *overlay.Overlay
	writer  *database.Writer
	// projected are the fields that objects are reduced to, or nil.
	projected *projection.Fields
	// labelSelector is the label selector of the stream. It is nil if the selector is not valid. It selects nothing if
	// only the server can evaluate the other selectors of the stream. The selector of [restoration.Detector] is nil then,
	// because a detector asks what the stream certainly shows.
	labelSelector labels.Selector
	// fieldSelector is the field selector of the stream. It selects by the name and the namespace of objects.
	fieldSelector kubefields.Selector
}

func newMissedStates(s *Store, o *overlay.Overlay, w *database.Writer, projected *projection.Fields) missedStates {
	labelSelector, err := labels.Parse(s.Stream().LabelSelector)
	if err != nil {
		labelSelector = nil // the server refuses it
	}
	fieldSelector, ok := fieldSelectorOf(s.Stream())
	if !ok {
		labelSelector = labels.Nothing()
	}
	return missedStates{
		store: s, overlay: o, writer: w, projected: projected, labelSelector: labelSelector, fieldSelector: fieldSelector,
	}
}

// fieldSelectorOf returns the field selector of a stream. It reports false if the stream selects by something else than
// labels, names and namespaces. For example, it reports false for status.phase=Running.
func fieldSelectorOf(s wire.Stream) (kubefields.Selector, bool) {
	selector, err := kubefields.ParseSelector(s.FieldSelector)
	if err != nil || s.ShardSelector != "" {
		return kubefields.Everything(), false
	}
	for _, r := range selector.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return kubefields.Everything(), false
		}
	}
	return selector, true
}

// hasMissedStateOf reports whether the stream has missed a state of the object that c, a change of a list,
// shows.
func (m *missedStates) hasMissedStateOf(c follow.Change) bool {
	entry, ok := m.overlay.Get(m.keyOf(c))
	if !ok {
		return false
	}
	observation, _ := m.store.observe(c.Key)
	return !entry.IsObservedBy(observation)
}

// afterList returns the last states of the objects that the stream has missed and its list does not contain.
// The list began at a tick and is complete at version. Somebody has deleted these objects, or they no longer
// match the selector. Objects that never matched are not among them. If only the server can evaluate the selector of
// the stream, there are no such objects.
func (m *missedStates) afterList(version string, began overlay.Tick) []*database.PackedObject {
	var missed []*database.PackedObject
	for k, entry := range m.overlay.Entries(m.store.collection()) {
		isFromBeforeList := entry.IsRecordedBefore(began)
		missed = append(missed, m.statesOf(k, entry, func(value overlay.Entry) bool {
			// A value of another UID that is older than the object in the store was published when
			// the list contained the object.
			stored := m.store.database.Get(k.ObjectKey())
			return (isFromBeforeList || ident.HasReached(version, value.Version)) &&
				(stored == nil || stored.UID() != value.UID && ident.IsNewer(value.Version, stored.ResourceVersion()))
		})...)
	}
	return missed
}

// predecessorsOf returns the last states of missed objects that had the name of the object in c. c is a
// change of a list. before is what c replaces in the store, or nil.
func (m *missedStates) predecessorsOf(c follow.Change, before *database.PackedObject) []*database.PackedObject {
	k := m.keyOf(c)
	entry, ok := m.overlay.Get(k)
	if !ok {
		return nil
	}
	return m.statesOf(k, entry, func(value overlay.Entry) bool {
		return value.UID != c.UID && ident.IsNewer(c.ResourceVersion, value.Version) &&
			(before == nil || before.UID() != value.UID)
	})
}

// statesOf returns the values of entry for which isMissed returns true, as packed objects of this stream, at most
// one for each UID. It leaves out the values that the store had reached before the list.
func (m *missedStates) statesOf(
	k overlay.Key, entry overlay.Entry, isMissed func(overlay.Entry) bool,
) []*database.PackedObject {
	var states []*database.PackedObject
	for _, value := range entry.Values() {
		if ident.HasReached(m.store.Version(), value.Version) || !isMissed(value) ||
			!m.fieldSelector.Empty() &&
				!m.fieldSelector.Matches(kubefields.Set{"metadata.name": k.Name, "metadata.namespace": k.Namespace}) {
			continue
		}
		p := m.packedValueOf(k, value)
		if p == nil || m.labelSelector != nil && !m.labelSelector.Matches(p.Labels()) {
			continue
		}
		i := slices.IndexFunc(states, p.IsSameObject)
		switch {
		case i < 0:
			states = append(states, p)
		case ident.IsNewer(p.ResourceVersion(), states[i].ResourceVersion()):
			states[i] = p
		}
	}
	return states
}

// packedValueOf returns a value of the overlay as a packed object of the store. It returns nil if the content of the
// value was not kept, or cannot be read.
func (m *missedStates) packedValueOf(k overlay.Key, value overlay.Entry) *database.PackedObject {
	object := value.Object
	switch {
	case object == nil:
	case m.projected != nil:
		object, _ = m.projected.AppendObject(nil, object)
	case m.store.stream.Representation == wire.MetadataOnly:
		object, _ = metadataOf(object)
	}
	if object == nil {
		return nil
	}
	p, err := m.writer.Build(database.NewItem(k.ObjectKey(), value.UID, value.Version, object))
	if err != nil {
		return nil
	}
	return p
}

func (m *missedStates) keyOf(c follow.Change) overlay.Key {
	s := m.store.stream
	return overlay.KeyOf(wire.Ref{Cluster: s.Cluster, Resource: s.Resource, Namespace: c.Key.Namespace, Name: c.Key.Name})
}
