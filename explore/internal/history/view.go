package history

import (
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// View shows the versions of a run as the rules of package rules judge them. Its methods are safe for concurrent use.
type View struct {
	History
	words   *words
	options Options
}

// NewView returns the view of a history.
func NewView(h History, o Options) *View { return &View{h, wordsOf(h), o} }

// Object returns the resource and the normalized name of an object.
func (v *View) Object(of Version) faults.Object { return v.words.objectOf(of) }

// IsOperator reports whether a field manager is the operator.
func (v *View) IsOperator(manager string) bool { return v.options.isOperator(manager) }

// IsUser reports whether a field manager is the user, and neither the operator nor a stranger.
func (v *View) IsUser(manager string) bool {
	return manager != faults.ForeignManager && slices.Contains(v.options.Users, manager)
}

// Fields returns the values of all fields by their paths, as JSON. Texts stand for what differs between runs, such as
// times, and for values of Secrets.
func (v *View) Fields(of Version) map[string]string {
	all := make(map[string]string)
	for path, f := range fieldsOf(of, v.words, ownership{}) {
		all[path] = f.value
	}
	return all
}

// FieldsOf returns the fields of [View.Fields] that belong to the field managers that isIncluded selects.
func (v *View) FieldsOf(of Version, isIncluded func(manager string) bool) map[string]string {
	owned := make(map[string]string)
	for path, f := range fieldsOf(of, v.words, ownershipOf(of.Object, isIncluded)) {
		if f.isOwned {
			owned[path] = f.value
		}
	}
	return owned
}

// Managers returns the field managers of a version, sorted. The control plane is left out, and so are the managers of
// subresources alone, such as the status.
func Managers(v Version) (managers []string) {
	for _, entry := range managedFields(v.Object) {
		manager, _ := entry["manager"].(string)
		subresource, _ := entry["subresource"].(string)
		isOfCluster := IsControlPlane(manager) || strings.HasPrefix(manager, simulatedPrefix)
		if subresource == "" && !isOfCluster && !slices.Contains(managers, manager) {
			managers = append(managers, manager)
		}
	}
	slices.Sort(managers)
	return managers
}

// HasCustomGroup reports whether the group of a version looks like that of a custom resource. For example, the group of
// a Gateway does not, although it has a definition: it ends in .k8s.io.
func HasCustomGroup(v Version) bool { return hasCustomGroup(v.Content().GetAPIVersion()) }

// IsFinishedJob reports whether a version is a Job that has finished, in success or not.
func IsFinishedJob(v Version) bool { return isFinishedJob(v) }

// IsMadeByController reports whether a built-in controller makes and deletes the object, such as a ReplicaSet or a Pod.
func IsMadeByController(v Version) bool { return isMadeByController(v) }
