// Package readiness says whether an object, such as a child, does what its spec asks for.
package readiness

import (
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/internal/builtin"
)

// Readiness is whether an object does what its spec asks for, as far as the object shows.
type Readiness struct {
	State State
	// Reason is one word in CamelCase, such as Available or ProgressDeadlineExceeded. It can be the reason of a
	// condition.
	Reason string
	// Message is a text for people, such as "2 of 3 pods are updated, 1 available".
	Message string
}

// State is the state of a [Readiness].
type State string

const (
	// Ready is the state of an object that does what its newest spec asks for.
	Ready State = "Ready"
	// Progressing is the state of an object that is on its way, and of one that is being deleted.
	Progressing State = "Progressing"
	// Failed is the state of an object that needs somebody: a rollout past its deadline, a Job without attempts.
	Failed State = "Failed"
	// Unknown is the state of an object that shows nothing that is known.
	Unknown State = "Unknown"
)

// Of returns the readiness of an object, such as the answer of [kube.API.Apply]:
//
//	live, err := kube.Apply(ctx, c, kube.OwnedBy(app, deployment(app)))
//	…
//	isReady := readiness.Of(live).State == readiness.Ready
//
// An object that is being deleted is not ready, and neither is one whose status is about an older generation. Then the
// kind decides:
//
//	Deployment, StatefulSet, DaemonSet, ReplicaSet   all replicas are of the newest revision and available; a
//	                                                 Deployment past its progress deadline has failed
//	Job                                              it is complete, or has failed
//	Pod                                              it is ready or has succeeded; a failed one, and one whose
//	                                                 container crashes again and again, has failed
//	Service                                          a load balancer has an address, others are ready at once
//	PersistentVolumeClaim                            it is bound; one that has lost its volume has failed
//	CustomResourceDefinition, Namespace              it is established, or active
//	other kinds of Kubernetes                        by their conditions as below, else ready as they exist
//	any other kind                                   Stalled and Reconciling, then Ready or Available, then the field
//	                                                 ready of the status, then observedGeneration; else unknown
//
// A condition with an observedGeneration of an older generation does not count. A claim that waits for its first
// consumer is progressing until a Pod uses it: do not wait for the claim before making the Pod. The rules are those of
// kstatus (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md), and stricter:
// docs/guide/status.md lists the differences. The readiness of metadata alone is unknown.
func Of(obj kube.Object) Readiness {
	if obj == nil {
		return Readiness{Unknown, "NoObject", "there is no object"}
	}
	if _, isMetadata := obj.(*metav1.PartialObjectMetadata); isMetadata {
		return Readiness{Unknown, "MetadataOnly", "only the metadata of the object is known"}
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	if t, err := kube.TypeOfObject(obj); err == nil {
		kind = t.Resource.GroupVersionKind
	}
	text, err := kube.Marshal(obj)
	if err != nil {
		return unreadableStatus(err)
	}
	return readinessOfJSON(kind.GroupKind(), text)
}

// unreadableStatus returns the readiness of an object whose status has another form than its kind.
func unreadableStatus(err error) Readiness {
	return Readiness{Unknown, "UnreadableStatus", "the status cannot be read: " + err.Error()}
}

// readinessOfJSON returns the readiness of an object.
func readinessOfJSON(kind schema.GroupKind, text []byte) Readiness {
	var content struct {
		Metadata struct {
			Generation        int64  `json:"generation"`
			DeletionTimestamp string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Spec   jsontext.Value `json:"spec"`
		Status jsontext.Value `json:"status"`
	}
	if err := kube.Unmarshal(text, &content); err != nil {
		return unreadableStatus(err)
	}
	if content.Metadata.DeletionTimestamp != "" {
		return Readiness{Progressing, "Terminating", "the object is being deleted"}
	}
	o := observed{generation: content.Metadata.Generation}
	if err := o.decode(content.Status, &o.observedStatus); err != nil {
		return unreadableStatus(err)
	}
	rule, hasRule := readinessRule(kind)
	isWorkload := hasRule && kind.Group == "apps" // its rule looks at the generation
	if seen := o.ObservedGeneration; seen != nil && *seen < o.generation && !isWorkload {
		return Readiness{Progressing, "NotObserved", "the newest generation has not been looked at yet"}
	}
	if !hasRule {
		return o.byConditions(builtin.HasKind(kind))
	}
	if err := o.decode(content.Spec, &o.spec); err != nil {
		return unreadableStatus(err)
	}
	if err := o.decode(content.Status, &o.status); err != nil {
		return unreadableStatus(err)
	}
	return rule(&o)
}
