package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Readiness is whether an object does what its spec asks for, as far as the object shows.
type Readiness struct {
	State ReadinessState
	// Reason is one word in CamelCase, such as Available or ProgressDeadlineExceeded. It can be the reason of a
	// condition.
	Reason string
	// Message is a text for people, such as "2 of 3 pods are updated, 1 available".
	Message string
}

// ReadinessState is the state of a [Readiness].
type ReadinessState string

const (
	// StateReady is the state of an object that does what its newest spec asks for.
	StateReady ReadinessState = "Ready"
	// StateProgressing is the state of an object that is on its way, and of one that is being deleted.
	StateProgressing ReadinessState = "Progressing"
	// StateFailed is the state of an object that needs somebody: a rollout past its deadline, a Job without attempts.
	StateFailed ReadinessState = "Failed"
	// StateUnknown is the state of an object that shows nothing that is known.
	StateUnknown ReadinessState = "Unknown"
)

// ReadinessOf returns the readiness of an object, such as the answer of [API.Apply]:
//
//	live, err := kube.Apply(ctx, c, kube.OwnedBy(app, deployment(app)))
//	…
//	readiness := kube.ReadinessOf(live)
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
func ReadinessOf(obj Object) Readiness {
	if obj == nil {
		return Readiness{StateUnknown, "NoObject", "there is no object"}
	}
	if _, isMetadata := obj.(*metav1.PartialObjectMetadata); isMetadata {
		return Readiness{StateUnknown, "MetadataOnly", "only the metadata of the object is known"}
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	if t, err := TypeOfObject(obj); err == nil {
		kind = t.Resource.GroupVersionKind
	}
	text, err := Marshal(obj)
	if err != nil {
		return unreadableStatus(err)
	}
	return readinessOfJSON(kind.GroupKind(), text)
}

// unreadableStatus returns the readiness of an object whose status has another form than its kind.
func unreadableStatus(err error) Readiness {
	return Readiness{StateUnknown, "UnreadableStatus", "the status cannot be read: " + err.Error()}
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
	if err := Unmarshal(text, &content); err != nil {
		return unreadableStatus(err)
	}
	if content.Metadata.DeletionTimestamp != "" {
		return Readiness{StateProgressing, "Terminating", "the object is being deleted"}
	}
	o := observed{generation: content.Metadata.Generation}
	if err := o.decode(content.Status, &o.observedStatus); err != nil {
		return unreadableStatus(err)
	}
	rule, hasRule := readinessRule(kind)
	isWorkload := hasRule && kind.Group == "apps" // its rule looks at the generation
	if seen := o.ObservedGeneration; seen != nil && *seen < o.generation && !isWorkload {
		return Readiness{StateProgressing, "NotObserved", "the newest generation has not been looked at yet"}
	}
	if !hasRule {
		return o.byConditions(isBuiltinKind(kind))
	}
	if err := o.decode(content.Spec, &o.spec); err != nil {
		return unreadableStatus(err)
	}
	if err := o.decode(content.Status, &o.status); err != nil {
		return unreadableStatus(err)
	}
	return rule(&o)
}

// readinessRule returns the rule of a kind of Kubernetes. It reports whether the kind has one.
func readinessRule(kind schema.GroupKind) (rule func(*observed) Readiness, hasRule bool) {
	rule, hasRule = map[string]func(*observed) Readiness{
		"Deployment.apps": (*observed).deployment, "StatefulSet.apps": (*observed).statefulSet,
		"DaemonSet.apps": (*observed).daemonSet, "ReplicaSet.apps": (*observed).replicaSet,
		"Job.batch": (*observed).job, "Pod": (*observed).pod, "Service": (*observed).service,
		"PersistentVolumeClaim": (*observed).claim, "Namespace": (*observed).namespace,
		"CustomResourceDefinition.apiextensions.k8s.io": (*observed).definition,
	}[kind.String()]
	return rule, hasRule
}

// observed is what the rules read of an object. spec and status are set for kinds with a rule.
type observed struct {
	generation int64
	observedStatus
	spec   observedSpec
	status observedFields
}

// observedStatus is what the statuses of all kinds have in common.
type observedStatus struct {
	ObservedGeneration *int64              `json:"observedGeneration"`
	Conditions         []observedCondition `json:"conditions"`
	Ready              jsontext.Value      `json:"ready"`
}

type observedCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

// observedSpec holds the fields of the specs of Kubernetes' kinds.
type observedSpec struct {
	Replicas       *int64 `json:"replicas"`
	Type           string `json:"type"`
	Suspend        bool   `json:"suspend"`
	UpdateStrategy struct {
		Type          string `json:"type"`
		RollingUpdate struct {
			Partition int64 `json:"partition"`
		} `json:"rollingUpdate"`
	} `json:"updateStrategy"`
}

// observedFields holds the fields of the statuses of Kubernetes' kinds.
type observedFields struct {
	Replicas          int64  `json:"replicas"`
	UpdatedReplicas   int64  `json:"updatedReplicas"`
	AvailableReplicas int64  `json:"availableReplicas"`
	CurrentRevision   string `json:"currentRevision"`
	UpdateRevision    string `json:"updateRevision"`
	DesiredNodes      int64  `json:"desiredNumberScheduled"`
	UpdatedNodes      int64  `json:"updatedNumberScheduled"`
	AvailableNodes    int64  `json:"numberAvailable"`
	Phase             string `json:"phase"`
	Reason            string `json:"reason"`
	Message           string `json:"message"`
	LoadBalancer      struct {
		Ingress []jsontext.Value `json:"ingress"`
	} `json:"loadBalancer"`
	ContainerStatuses []struct {
		Name  string `json:"name"`
		State struct {
			Waiting struct {
				Reason  string `json:"reason"`
				Message string `json:"message"`
			} `json:"waiting"`
		} `json:"state"`
	} `json:"containerStatuses"`
}

// decode decodes a part of the object, which may be absent.
func (*observed) decode(text jsontext.Value, into any) error {
	if len(text) == 0 {
		return nil
	}
	return Unmarshal(text, into)
}

// condition returns the condition of a type. It reports whether the condition is there and about the newest generation.
func (o *observed) condition(conditionType string) (c observedCondition, isCurrent bool) {
	i := slices.IndexFunc(o.Conditions, func(c observedCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return observedCondition{}, false
	}
	c = o.Conditions[i]
	return c, c.ObservedGeneration == 0 || c.ObservedGeneration >= o.generation
}

// isTrue reports whether the condition of a type is True, and returns the condition.
func (o *observed) isTrue(conditionType string) (observedCondition, bool) {
	c, isCurrent := o.condition(conditionType)
	return c, isCurrent && c.Status == "True"
}

// readiness returns a readiness with the reason and the message of the condition, or with those that are given.
func (c observedCondition) readiness(state ReadinessState, reason, message string) Readiness {
	return Readiness{state, cmp.Or(c.Reason, reason), cmp.Or(c.Message, message)}
}

// isGenerationObserved reports whether the status is about the newest generation.
func (o *observed) isGenerationObserved() bool {
	return o.ObservedGeneration != nil && *o.ObservedGeneration >= o.generation
}

// rollout returns the readiness of a workload whose replicas are counted.
func (o *observed) rollout(isComplete bool, message string) Readiness {
	if isComplete && o.isGenerationObserved() {
		return Readiness{StateReady, "Available", message}
	}
	return Readiness{StateProgressing, "Progressing", message}
}

// wanted returns the number of replicas of the spec.
func (o *observed) wanted() int64 {
	if o.spec.Replicas == nil {
		return 1
	}
	return *o.spec.Replicas
}

func (o *observed) deployment() Readiness {
	c, _ := o.condition("Progressing")
	if o.isGenerationObserved() && c.Status == "False" && c.Reason == "ProgressDeadlineExceeded" {
		return c.readiness(StateFailed, "", "the rollout has not progressed within its deadline")
	}
	want, s := o.wanted(), o.status
	if c, hasFailed := o.isTrue("ReplicaFailure"); hasFailed && s.AvailableReplicas < want {
		return c.readiness(StateProgressing, "ReplicaFailure", "pods cannot be created")
	}
	return o.rollout(s.Replicas == want && s.UpdatedReplicas == want && s.AvailableReplicas == want,
		fmt.Sprintf("%d of %d pods are updated, %d available", s.UpdatedReplicas, want, s.AvailableReplicas))
}

func (o *observed) statefulSet() Readiness {
	want, s, updated := o.wanted(), o.status, o.status.UpdatedReplicas
	if s.CurrentRevision == s.UpdateRevision {
		updated = s.Replicas // the set does not count them then
	}
	wantUpdated := max(0, want-o.spec.UpdateStrategy.RollingUpdate.Partition)
	if o.spec.UpdateStrategy.Type == "OnDelete" {
		wantUpdated = 0 // somebody else deletes the old pods
	}
	return o.rollout(s.Replicas == want && updated >= wantUpdated && s.AvailableReplicas == want,
		fmt.Sprintf("%d of %d pods are updated, %d available", updated, want, s.AvailableReplicas))
}

func (o *observed) daemonSet() Readiness {
	want, s := o.status.DesiredNodes, o.status
	isUpdated := s.UpdatedNodes >= want || o.spec.UpdateStrategy.Type == "OnDelete"
	return o.rollout(isUpdated && s.AvailableNodes >= want,
		fmt.Sprintf("%d of %d pods are updated, %d available", s.UpdatedNodes, want, s.AvailableNodes))
}

func (o *observed) replicaSet() Readiness {
	want, s := o.wanted(), o.status
	if c, hasFailed := o.isTrue("ReplicaFailure"); hasFailed {
		return c.readiness(StateProgressing, "ReplicaFailure", "pods cannot be created")
	}
	return o.rollout(s.Replicas == want && s.AvailableReplicas == want,
		fmt.Sprintf("%d of %d pods are available", s.AvailableReplicas, want))
}

func (o *observed) job() Readiness {
	if c, isComplete := o.isTrue("Complete"); isComplete {
		return c.readiness(StateReady, "Complete", "the job is complete")
	}
	for _, name := range []string{"Failed", "FailureTarget"} {
		if c, hasFailed := o.isTrue(name); hasFailed {
			return c.readiness(StateFailed, "Failed", "the job has failed")
		}
	}
	if o.spec.Suspend {
		return Readiness{StateProgressing, "Suspended", "the job is suspended"}
	}
	return Readiness{StateProgressing, "Running", "the job is not complete"}
}

func (o *observed) pod() Readiness {
	s := o.status
	switch s.Phase {
	case "Succeeded":
		return Readiness{StateReady, "Succeeded", "the pod has succeeded"}
	case "Failed":
		return Readiness{StateFailed, cmp.Or(s.Reason, "Failed"), cmp.Or(s.Message, "the pod has failed")}
	}
	if c, isReady := o.isTrue("Ready"); isReady {
		return c.readiness(StateReady, "Ready", "the pod is ready")
	}
	for _, container := range s.ContainerStatuses {
		waiting := container.State.Waiting
		switch waiting.Reason {
		case "CrashLoopBackOff":
			return Readiness{StateFailed, waiting.Reason, "the container " + container.Name + " crashes again and again"}
		case "", "ContainerCreating", "PodInitializing":
		default:
			return Readiness{StateProgressing, waiting.Reason, "the container " + container.Name + " waits: " + waiting.Message}
		}
	}
	if c, isCurrent := o.condition("PodScheduled"); isCurrent && c.Status == "False" {
		return c.readiness(StateProgressing, "Unscheduled", "the pod has no node")
	}
	c, _ := o.condition("Ready")
	return c.readiness(StateProgressing, "NotReady", "the pod is "+strings.ToLower(cmp.Or(s.Phase, "pending")))
}

func (o *observed) service() Readiness {
	if o.spec.Type == "LoadBalancer" && len(o.status.LoadBalancer.Ingress) == 0 {
		return Readiness{StateProgressing, "NoAddress", "the load balancer has no address"}
	}
	return exists()
}

func (o *observed) claim() Readiness {
	switch o.status.Phase {
	case "Bound":
		return Readiness{StateReady, "Bound", "the claim is bound"}
	case "Lost":
		return Readiness{StateFailed, "Lost", "the claim has lost its volume"}
	}
	return Readiness{StateProgressing, "Pending", "the claim is not bound"}
}

func (o *observed) namespace() Readiness {
	if o.status.Phase == "Active" {
		return Readiness{StateReady, "Active", "the namespace is active"}
	}
	return Readiness{StateProgressing, cmp.Or(o.status.Phase, "Pending"), "the namespace is not active"}
}

func (o *observed) definition() Readiness {
	if c, _ := o.condition("NamesAccepted"); c.Status == "False" {
		return c.readiness(StateFailed, "NamesNotAccepted", "another definition has the names")
	}
	c, _ := o.condition("Established")
	switch {
	case c.Status == "True":
		return Readiness{StateReady, "Established", "the definition is established"}
	case c.Status == "False" && c.Reason != "Installing":
		return c.readiness(StateFailed, "NotEstablished", "the definition is not established")
	}
	return Readiness{StateProgressing, "Installing", "the definition is not established"}
}

// byConditions returns the readiness of an object whose kind has no rule.
func (o *observed) byConditions(isBuiltin bool) Readiness {
	if c, isStalled := o.isTrue("Stalled"); isStalled {
		return c.readiness(StateFailed, "Stalled", "the object is stalled")
	}
	if c, isReconciling := o.isTrue("Reconciling"); isReconciling {
		return c.readiness(StateProgressing, "Reconciling", "the object is being reconciled")
	}
	for _, name := range []string{"Ready", "Available"} {
		c, isCurrent := o.condition(name)
		switch {
		case c.Type == "":
			continue
		case !isCurrent:
			return Readiness{StateProgressing, "NotObserved", "the condition " + name + " is about an older generation"}
		case c.Status == "True":
			return c.readiness(StateReady, name, "the condition "+name+" is True")
		}
		return c.readiness(StateProgressing, "Not"+name, "the condition "+name+" is "+c.Status)
	}
	switch string(o.Ready) {
	case "true":
		return Readiness{StateReady, "Ready", "status.ready is true"}
	case "false":
		return Readiness{StateProgressing, "NotReady", "status.ready is false"}
	}
	switch {
	case isBuiltin:
		return exists()
	case o.ObservedGeneration != nil && len(o.Conditions) == 0:
		return Readiness{StateReady, "Observed", "the newest generation has been looked at"}
	}
	return Readiness{StateUnknown, "NoCondition", "the status has neither the condition Ready nor Available"}
}

// exists returns the readiness of an object that is ready when it exists.
func exists() Readiness { return Readiness{StateReady, "Exists", "the object exists"} }
