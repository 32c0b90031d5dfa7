package history

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/explore/schedule"
)

// Options say what of the objects is judged.
type Options struct {
	// Users are the field managers of everybody but the operator: of the user's steps, of faults, and
	// of other programs. Those of the control plane are known.
	Users []string
	// Ignore are the fields that are not judged.
	Ignore []Ignore
}

// Ignore is a field that is not judged, with what is below it.
type Ignore struct {
	// Path is the path of the field, such as status.lastBackup or
	// spec.containers[name=web].image. Before the path, and a space, may stand the objects:
	// webapps.example.com, or secrets/web. An asterisk in either stands for any text. The path * is
	// the whole object.
	Path string
	// Reason is why the field is not judged.
	Reason string
}

// String returns the path and the reason.
func (i Ignore) String() string { return fmt.Sprintf("%s (%s)", i.Path, i.Reason) }

// check returns an error if the options mean nothing.
func (o Options) check() error {
	var errs []error
	for _, i := range o.Ignore {
		switch {
		case i.Path == "":
			errs = append(errs, fmt.Errorf("an ignored path is empty (its reason is %q)", i.Reason))
		case i.Reason == "":
			errs = append(errs, fmt.Errorf("the ignored path %s has no reason", i.Path))
		}
	}
	return errors.Join(errs...)
}

// isIgnored reports whether a field is not judged. The path of a whole object is empty.
func (o Options) isIgnored(object schedule.Object, path string) bool {
	return slices.ContainsFunc(o.Ignore, func(i Ignore) bool {
		objects, field, hasObjects := strings.Cut(i.Path, " ")
		if !hasObjects {
			objects, field = "*", i.Path
		}
		return (matches(objects, object.Resource) || matches(objects, object.String())) && (field == "*" || isBelow(field, path))
	})
}

// isBelow reports whether a path is that of a field, or of a part of the field. The field may contain
// asterisks.
func isBelow(field, path string) bool {
	if path == "" {
		return false
	}
	for i := range len(path) + 1 {
		if (i == len(path) || path[i] == '.' || path[i] == '[') && matches(field, path[:i]) {
			return true
		}
	}
	return false
}

// matches reports whether text matches a pattern, in which an asterisk stands for any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString("^"+strings.Join(parts, ".*")+"$", text)
	return err == nil && ok
}

// isOperator reports whether a field manager is the operator.
func (o Options) isOperator(manager string) bool {
	switch manager {
	case "", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet":
		return false
	}
	return !strings.HasPrefix(manager, "yare-simulated-") && !slices.Contains(o.Users, manager)
}

// isNoise reports whether the objects of a resource come and change at rest.
func isNoise(resource string) bool {
	switch resource {
	case "events", "events.events.k8s.io", "leases.coordination.k8s.io":
		return true
	}
	return false
}

// isJudged reports whether an object takes part in comparisons if the operator has written it.
func isJudged(v Version) bool {
	return !isNoise(v.Resource) && !isFinishedJob(v) && !isClaimOfStatefulSet(v)
}

// claimsOf returns what of an object is compared: what the operator has written. It is empty if the
// object is not compared.
func (o Options) claimsOf(v Version) claims {
	if !isJudged(v) {
		return claims{}
	}
	c := claimsOf(v.Object, o.isOperator)
	if v.Resource == "secrets" {
		// The server moves stringData to data, and leaves the ownership where it was.
		for _, set := range c.sets {
			if written := set["f:stringData"]; written != nil {
				c.sets = append(c.sets, map[string]any{"f:data": written})
			}
		}
	}
	switch {
	case isCustom(v.content().GetAPIVersion()):
		c.sets = append(c.sets, map[string]any{"f:status": nil})
	case c.isEmpty() && isOwnedByCustomObject(v):
		for name := range v.Object {
			if name != "metadata" && name != "status" {
				c.sets = append(c.sets, map[string]any{"f:" + name: nil})
			}
		}
	case c.isEmpty():
		return c
	}
	c.sets = append(c.sets, map[string]any{"f:metadata": map[string]any{"f:deletionTimestamp": nil}})
	return c
}

// isCustom reports whether an apiVersion is that of a custom resource.
func isCustom(apiVersion string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && strings.Contains(gv.Group, ".") && !strings.HasSuffix(gv.Group, ".k8s.io")
}

// isOwnedByCustomObject reports whether a custom object is an owner of an object.
func isOwnedByCustomObject(v Version) bool {
	for _, owner := range v.content().GetOwnerReferences() {
		if isCustom(owner.APIVersion) {
			return true
		}
	}
	return false
}

// isMadeByController reports whether a built-in controller makes and deletes the object, as it does
// ReplicaSets and Pods.
func isMadeByController(v Version) bool {
	for _, owner := range v.content().GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller && !isCustom(owner.APIVersion) {
			return true
		}
	}
	return v.Resource == "endpoints"
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
	c := claimsOf(v.Object, func(manager string) bool { return manager == "kube-controller-manager" })
	return !c.member("spec").member("accessModes").isEmpty()
}
