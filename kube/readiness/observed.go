package readiness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
)

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
	return kube.Unmarshal(text, into)
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
func (c observedCondition) readiness(state State, reason, message string) Readiness {
	return Readiness{state, cmp.Or(c.Reason, reason), cmp.Or(c.Message, message)}
}

// isGenerationObserved reports whether the status is about the newest generation.
func (o *observed) isGenerationObserved() bool {
	return o.ObservedGeneration != nil && *o.ObservedGeneration >= o.generation
}

// rollout returns the readiness of a workload whose replicas are counted.
func (o *observed) rollout(isComplete bool, message string) Readiness {
	if isComplete && o.isGenerationObserved() {
		return Readiness{Ready, "Available", message}
	}
	return Readiness{Progressing, "Progressing", message}
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
		return c.readiness(Failed, "", "the rollout has not progressed within its deadline")
	}
	want, s := o.wanted(), o.status
	if c, hasFailed := o.isTrue("ReplicaFailure"); hasFailed && s.AvailableReplicas < want {
		return c.readiness(Progressing, "ReplicaFailure", "pods cannot be created")
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
		return c.readiness(Progressing, "ReplicaFailure", "pods cannot be created")
	}
	return o.rollout(s.Replicas == want && s.AvailableReplicas == want,
		fmt.Sprintf("%d of %d pods are available", s.AvailableReplicas, want))
}

func (o *observed) job() Readiness {
	if c, isComplete := o.isTrue("Complete"); isComplete {
		return c.readiness(Ready, "Complete", "the job is complete")
	}
	for _, name := range []string{"Failed", "FailureTarget"} {
		if c, hasFailed := o.isTrue(name); hasFailed {
			return c.readiness(Failed, "Failed", "the job has failed")
		}
	}
	if o.spec.Suspend {
		return Readiness{Progressing, "Suspended", "the job is suspended"}
	}
	return Readiness{Progressing, "Running", "the job is not complete"}
}

func (o *observed) pod() Readiness {
	s := o.status
	switch s.Phase {
	case "Succeeded":
		return Readiness{Ready, "Succeeded", "the pod has succeeded"}
	case "Failed":
		return Readiness{Failed, cmp.Or(s.Reason, "Failed"), cmp.Or(s.Message, "the pod has failed")}
	}
	if c, isReady := o.isTrue("Ready"); isReady {
		return c.readiness(Ready, "Ready", "the pod is ready")
	}
	for _, container := range s.ContainerStatuses {
		waiting := container.State.Waiting
		switch waiting.Reason {
		case "CrashLoopBackOff":
			return Readiness{Failed, waiting.Reason, "the container " + container.Name + " crashes again and again"}
		case "", "ContainerCreating", "PodInitializing":
		default:
			return Readiness{Progressing, waiting.Reason, "the container " + container.Name + " waits: " + waiting.Message}
		}
	}
	if c, isCurrent := o.condition("PodScheduled"); isCurrent && c.Status == "False" {
		return c.readiness(Progressing, "Unscheduled", "the pod has no node")
	}
	c, _ := o.condition("Ready")
	return c.readiness(Progressing, "NotReady", "the pod is "+strings.ToLower(cmp.Or(s.Phase, "pending")))
}

func (o *observed) service() Readiness {
	if o.spec.Type == "LoadBalancer" && len(o.status.LoadBalancer.Ingress) == 0 {
		return Readiness{Progressing, "NoAddress", "the load balancer has no address"}
	}
	return exists()
}

func (o *observed) claim() Readiness {
	switch o.status.Phase {
	case "Bound":
		return Readiness{Ready, "Bound", "the claim is bound"}
	case "Lost":
		return Readiness{Failed, "Lost", "the claim has lost its volume"}
	}
	return Readiness{Progressing, "Pending", "the claim is not bound"}
}

func (o *observed) namespace() Readiness {
	if o.status.Phase == "Active" {
		return Readiness{Ready, "Active", "the namespace is active"}
	}
	return Readiness{Progressing, cmp.Or(o.status.Phase, "Pending"), "the namespace is not active"}
}

func (o *observed) definition() Readiness {
	if c, _ := o.condition("NamesAccepted"); c.Status == "False" {
		return c.readiness(Failed, "NamesNotAccepted", "another definition has the names")
	}
	c, _ := o.condition("Established")
	switch {
	case c.Status == "True":
		return Readiness{Ready, "Established", "the definition is established"}
	case c.Status == "False" && c.Reason != "Installing":
		return c.readiness(Failed, "NotEstablished", "the definition is not established")
	}
	return Readiness{Progressing, "Installing", "the definition is not established"}
}

// byConditions returns the readiness of an object whose kind has no rule.
func (o *observed) byConditions(isBuiltin bool) Readiness {
	if c, isStalled := o.isTrue("Stalled"); isStalled {
		return c.readiness(Failed, "Stalled", "the object is stalled")
	}
	if c, isReconciling := o.isTrue("Reconciling"); isReconciling {
		return c.readiness(Progressing, "Reconciling", "the object is being reconciled")
	}
	for _, name := range []string{"Ready", "Available"} {
		c, isCurrent := o.condition(name)
		switch {
		case c.Type == "":
			continue
		case !isCurrent:
			return Readiness{Progressing, "NotObserved", "the condition " + name + " is about an older generation"}
		case c.Status == "True":
			return c.readiness(Ready, name, "the condition "+name+" is True")
		}
		return c.readiness(Progressing, "Not"+name, "the condition "+name+" is "+c.Status)
	}
	switch string(o.Ready) {
	case "true":
		return Readiness{Ready, "Ready", "status.ready is true"}
	case "false":
		return Readiness{Progressing, "NotReady", "status.ready is false"}
	}
	switch {
	case isBuiltin:
		return exists()
	case o.ObservedGeneration != nil && len(o.Conditions) == 0:
		return Readiness{Ready, "Observed", "the newest generation has been looked at"}
	}
	return Readiness{Unknown, "NoCondition", "the status has neither the condition Ready nor Available"}
}

// exists returns the readiness of an object that is ready when it exists.
func exists() Readiness { return Readiness{Ready, "Exists", "the object exists"} }
