// Package history records what an administrator sees of a run of an exploration, and judges it.
//
// A [Recorder] watches every resource of the run's namespaces outside of the program's connection,
// and keeps every version of every object. [History] is the result. [NewMasks] finds what differs
// between runs that should be equal, [Masks.Compare] compares two states of such runs, and
// [Destroyed] finds what a run has destroyed on its way.
//
// # What is compared
//
// The fields of an object that the operator wrote are compared: the fields that its field managers own, by
// managedFields, and the whole status of a custom object. The built-in controllers and the users (see
// [Options]) are not the operator. All other field managers are the operator. Therefore the objects that the
// built-in controllers make, such as ReplicaSets and the Pods of a Job, take no part. Events, Leases, Jobs
// that have finished, and the PersistentVolumeClaims of StatefulSets take no part either.
//
// # What runs have for themselves
//
// Two runs have different namespaces, uids, generated names, times, IP addresses, node ports and
// resource versions. These are replaced by what they stand for, also within texts, before anything is
// compared.
package history

import (
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
)

// Version is one version of one object.
type Version struct {
	// Resource is the plural name and the group, such as deployments.apps.
	Resource        string
	Namespace       string
	Name            string
	UID             types.UID
	ResourceVersion string
	// Object is the object as the server sent it, as [unstructured.Unstructured] holds it. For a
	// deletion it is the last state. Nobody may change it.
	Object map[string]any
	// IsDeleted is true if this version is the deletion.
	IsDeleted bool
	// At is when the recorder received the version.
	At time.Time
	// Step is the index of the user's step during which the version came. It is -1 before the
	// first step.
	Step int
	// Manager is the field manager that wrote the version, as far as managedFields show it. It is
	// empty for deletions.
	Manager string
}

// Content returns the object with the methods of unstructured.
func (v Version) Content() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: v.Object}
}

// applyTo changes the present objects to the objects that exist after the version.
func (v Version) applyTo(present map[types.UID]Version) {
	if v.IsDeleted {
		delete(present, v.UID)
	} else {
		present[v.UID] = v
	}
}

// compareVersions orders versions by their resource versions.
func compareVersions(a, b Version) int { return ident.Compare(a.ResourceVersion, b.ResourceVersion) }

// History is all versions of the objects of a run.
type History struct {
	// Namespaces are the namespaces of the run.
	Namespaces []string
	// Versions are in the order in which the recorder received them. The versions of one object are in
	// their own order.
	Versions []Version
	// Gaps are the resources of which versions may be missing, because the server could not resume
	// a watch.
	Gaps []string

	// SecretKey is the key of the hashes that stand for values of Secrets. It must not be written.
	SecretKey []byte
}

// State returns the objects that exist after the last version.
func (h History) State() State {
	present := make(map[types.UID]Version)
	for _, v := range h.Versions {
		v.applyTo(present)
	}
	// The words of the whole history include the words of deleted objects, because other objects refer to them.
	return newState(maps.Values(present), wordsOf(h))
}

// States returns each version of the run with the state right after the version, in the order in which the
// server made the versions. The recorder may have received versions of different resources in another
// order, and so may have seen states that never were. A history with gaps has no such order.
func (h History) States() iter.Seq2[Version, State] {
	return func(yield func(Version, State) bool) {
		versions := slices.SortedStableFunc(slices.Values(h.Versions), compareVersions)
		w, present := wordsOf(h), make(map[types.UID]Version)
		for _, v := range versions {
			v.applyTo(present)
			if !yield(v, newState(maps.Values(present), w)) {
				return
			}
		}
	}
}
