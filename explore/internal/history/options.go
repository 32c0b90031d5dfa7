package history

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// Options are the settings of comparisons.
type Options struct {
	// Users are the field managers of everybody but the operator: of the user's steps, of faults, and of other programs. A
	// manager whose name begins with one of them and a hyphen is a tool of a user. The field managers of the control plane
	// need not be among them.
	Users []string
	// Accepted are the differences that are intended. It may be nil.
	Accepted *Accepted
}

// simulatedPrefix begins the field managers of the parts of the control plane that yare simulates.
const simulatedPrefix = "yare-simulated-"

// isOperator reports whether a field manager is the operator.
func (o Options) isOperator(manager string) bool {
	isProgram := manager != "" && !IsControlPlane(manager) && !strings.HasPrefix(manager, simulatedPrefix)
	return isProgram && !o.isUser(manager)
}

// isUser reports whether a field manager is a user, or a tool of a user.
func (o Options) isUser(manager string) bool {
	return slices.ContainsFunc(o.Users,
		func(user string) bool { return manager == user || strings.HasPrefix(manager, user+"-") })
}

// IsControlPlane reports whether a field manager is part of the control plane.
func IsControlPlane(manager string) bool {
	switch manager {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet":
		return true
	}
	return false
}

// QuotaName is the name of the ResourceQuota that an exploration makes in the namespace of each run. It is
// not recorded, because its status follows each object.
const QuotaName = "exploration-guard"

// isQuota reports whether an object is a ResourceQuota of the exploration.
func isQuota(v Version) bool {
	return v.Resource == "resourcequotas" && (v.Name == QuotaName || v.Name == faults.FullQuotaName)
}

// isJudged reports whether an object takes part in comparisons if the operator has written it.
func isJudged(v Version) bool {
	return !proxy.IsBackground(v.Resource) && !isFinishedJob(v) && !isClaimOfStatefulSet(v)
}

// ownershipOf returns the ownership of the part of an object that is compared: what the operator has written. The
// result is empty if the object is not compared.
func (o Options) ownershipOf(v Version) ownership {
	if !isJudged(v) {
		return ownership{}
	}
	owned := ownershipOf(v.Object, o.isOperator)
	if v.Resource == "secrets" {
		// The server moves stringData to data, and leaves the ownership where it was.
		for _, set := range owned.sets {
			if written := set["f:stringData"]; written != nil {
				owned.sets = append(owned.sets, map[string]any{"f:data": written})
			}
		}
	}
	if v.Resource == "pods" && !owned.isEmpty() {
		// a failed Pod is no Pod that serves
		owned.sets = append(owned.sets, map[string]any{"f:status": map[string]any{"f:phase": map[string]any{}}})
	}
	switch {
	case hasCustomGroup(v.Content().GetAPIVersion()):
		owned.sets = append(owned.sets, map[string]any{"f:status": nil})
	case owned.isEmpty() && isOwnedByCustomObject(v):
		for name := range v.Object {
			if name != "metadata" && name != "status" {
				owned.sets = append(owned.sets, map[string]any{"f:" + name: nil})
			}
		}
	case owned.isEmpty():
		return owned
	}
	owned.sets = append(owned.sets, map[string]any{"f:metadata": map[string]any{"f:deletionTimestamp": nil}})
	return owned
}

// hasCustomGroup reports whether an apiVersion belongs to a custom resource.
func hasCustomGroup(apiVersion string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && strings.Contains(gv.Group, ".") && !strings.HasSuffix(gv.Group, ".k8s.io")
}

// isOwnedByCustomObject reports whether a custom object is an owner of an object.
func isOwnedByCustomObject(v Version) bool {
	return slices.ContainsFunc(v.Content().GetOwnerReferences(),
		func(o metav1.OwnerReference) bool { return hasCustomGroup(o.APIVersion) })
}

// isMadeByController reports whether a built-in controller makes and deletes the object, such as a ReplicaSet
// or a Pod.
func isMadeByController(v Version) bool {
	owner := metav1.GetControllerOf(v.Content())
	return owner != nil && !hasCustomGroup(owner.APIVersion) || v.Resource == "endpoints"
}

// isFinishedJob reports whether a Job has finished, in success or not.
func isFinishedJob(v Version) bool {
	status, _ := v.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	return v.Resource == "jobs.batch" && slices.ContainsFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		return c["status"] == "True" && (c["type"] == "Complete" || c["type"] == "Failed")
	})
}

// isClaimOfStatefulSet reports whether a PersistentVolumeClaim was made from a template of a StatefulSet.
func isClaimOfStatefulSet(v Version) bool {
	if v.Resource != "persistentvolumeclaims" {
		return false
	}
	owned := ownershipOf(v.Object, func(manager string) bool { return manager == "kube-controller-manager" })
	return !owned.member("spec").member("accessModes").isEmpty()
}
