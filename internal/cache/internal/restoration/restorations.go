package restoration

import (
	"slices"
	"strings"
	"sync"

	"github.com/yare-go/yare/kube/wire"
)

// Restorations finds the streams of a program that a restoration concerns. All methods can be used concurrently.
type Restorations struct {
	// invalidateAnswers records that earlier answers do not count any more: see [New].
	invalidateAnswers func(cluster string, isAffected func(group string) bool)

	mu sync.Mutex
	// detectors holds a Detector for each open stream.
	detectors []*Detector
	// definedGroups holds the groups of the kinds that the program defines.
	definedGroups map[string]bool
}

// New returns Restorations without streams. invalidateAnswers is called when a restoration is found. From then on, what
// requests for the affected groups of a cluster were answered with must not count. invalidateAnswers must not use the
// Restorations.
func New(invalidateAnswers func(cluster string, isAffected func(group string) bool)) *Restorations {
	return &Restorations{invalidateAnswers: invalidateAnswers, definedGroups: make(map[string]bool)}
}

// Relister asks for lists of one stream. Its methods must not block, and must not use the Restorations.
type Relister interface {
	// Relist asks for a fresh list.
	Relist()
	// Probe asks for a list of one object, which shows whether the server has lost something.
	Probe()
}

// RecordDefinition records that the program defines kinds of a group.
func (r *Restorations) RecordDefinition(group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.definedGroups[group] = true
}

// Open adds a stream, whose lists l asks for.
func (r *Restorations) Open(s wire.Stream, l Relister) (*Detector, *Recorder) {
	d := &Detector{restorations: r, stream: s, selector: selectorOf(s), relister: l}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detectors = append(r.detectors, d)
	return d, &Recorder{detector: d}
}

// Close removes the stream of d.
func (r *Restorations) Close(d *Detector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detectors = slices.DeleteFunc(r.detectors, func(other *Detector) bool { return other == d })
	d.listTimer.stop()
	d.probeTimer.stop()
}

// scopeLocked returns the scope of a group in a cluster.
func (r *Restorations) scopeLocked(cluster, group string) scope {
	if isKubernetesGroup(group) || r.definedGroups[group] {
		group = ""
	}
	return scope{cluster, group}
}

// AreRestoredTogether reports whether a restoration that concerns the stream a concerns the stream b too.
func (r *Restorations) AreRestoredTogether(a, b wire.Stream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.scopeLocked(a.Cluster, a.Resource.Group) == r.scopeLocked(b.Cluster, b.Resource.Group)
}

// IsStoredWithLeases reports whether the server that stores the Leases of a cluster stores the objects of the stream s
// too. Then the resource versions of a Lease and of these objects can be compared. It is true of the kinds of
// Kubernetes and of the kinds that the program defines.
func (r *Restorations) IsStoredWithLeases(s wire.Stream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.scopeLocked(s.Cluster, s.Resource.Group).group == ""
}

// recordProof records that the stream of found has proved a restoration. list is the version of the list that is the
// proof. It is empty if the proof is a contradiction. recordProof returns false if the restoration is known, and has
// put the stream in doubt already. All streams of its scope are in doubt from now on, until they are listed. The
// versions that they have reached do not matter: the server may have passed such a version, and have assigned it twice.
// All other streams of the cluster are probed.
//
// A list is the proof of another restoration if it lacks a version that the server sent after the known restoration was
// recorded. Example: the streams of Pods and of Deployments have reached version 100.
//
//	Pods is listed at version 60             a restoration is known, and Deployments is in doubt
//	Deployments shows version 170            the server has sent this version after the restoration
//	Deployments is listed at version 150     the server was restored once more, and Pods is in doubt
func (r *Restorations) recordProof(found *Detector, list string) (isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isKnown := found.doubt.isDueToRestoration()
	if list != "" && found.expected.hasLostSinceRestoration(list) {
		isKnown = false
	}
	if isKnown {
		return false
	}
	cluster := found.stream.Cluster
	restored := r.scopeLocked(cluster, found.stream.Resource.Group)
	isAffected := func(group string) bool { return r.scopeLocked(cluster, group) == restored }
	for _, d := range r.detectors {
		switch {
		case d.stream.Cluster != cluster:
		case isAffected(d.stream.Resource.Group):
			d.expected.recordRestoration()
			d.doubt.addRestoration()
			if d != found {
				d.listTimer.start(d.listIfNeeded)
			}
		default:
			d.probeTimer.start(d.relister.Probe)
		}
	}
	r.invalidateAnswers(cluster, isAffected)
	return true
}

// scope names the streams that one restoration concerns, because one server assigns their resource versions.
//
// The kinds of Kubernetes and the kinds that the program defines are in one scope, with an empty group. They are
// stored in the etcd of the API server. Each foreign group is a scope of its own: an aggregated API server may serve
// the group, with a storage and with resource versions of its own.
//
// Example of a program that defines webapps.example.com:
//
//	deployments.apps, webapps.example.com     {"", ""}
//	certificates.cert-manager.io              {"", "cert-manager.io"}
//	pods.metrics.k8s.io                       {"", "metrics.k8s.io"}
//	deployments.apps of the cluster east      {"east", ""}
type scope struct{ cluster, group string }

// isKubernetesGroup reports whether Kubernetes defines the kinds of a group. The groups of CustomResourceDefinitions
// have a dot. A test compares the groups with a dot with the groups of k8s.io/api.
func isKubernetesGroup(group string) bool {
	switch group {
	case "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
		"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io",
		"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io":
		return true
	default:
		return !strings.Contains(group, ".")
	}
}
