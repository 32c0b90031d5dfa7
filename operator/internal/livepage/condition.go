package livepage

import "github.com/yare-go/yare/kube"

// condition is a condition of an object, as far as the page shows it.
type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

// shownObject is an object of any kind, as far as the page shows it.
type shownObject struct {
	Metadata struct {
		Name              string       `json:"name"`
		Namespace         string       `json:"namespace"`
		Generation        int64        `json:"generation"`
		CreationTimestamp string       `json:"creationTimestamp"`
		DeletionTimestamp string       `json:"deletionTimestamp"`
		Finalizers        []string     `json:"finalizers"`
		ManagedFields     []fieldEntry `json:"managedFields"`
	} `json:"metadata"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// fieldEntry is an entry of the managed fields of an object.
type fieldEntry struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource"`
	Time        string `json:"time"`
}

// decodeObject returns an object, as far as it can be decoded.
//
//go:noinline
func decodeObject(body []byte) *shownObject {
	o := new(shownObject)
	_ = kube.Unmarshal(body, o) // conditions of another form are not shown
	return o
}

// maxConditions bounds the conditions of one write or change that are kept.
const maxConditions = 8

// conditionsChanged returns the conditions of after that have another status than in before.
func conditionsChanged(before, after *shownObject) (changed []condition) {
	for i := range after.Status.Conditions {
		now := &after.Status.Conditions[i]
		if len(changed) == maxConditions || before.hasCondition(now.Type, now.Status) {
			continue
		}
		changed = append(changed, condition{
			Type: shortened(now.Type, maxValue), Status: shortened(now.Status, maxValue),
			Reason: shortened(now.Reason, maxValue), Message: shortened(now.Message, maxValue),
		})
	}
	return changed
}

// hasCondition reports whether a condition has a status.
func (o *shownObject) hasCondition(conditionType, status string) bool {
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == conditionType && c.Status == status {
			return true
		}
	}
	return false
}

// hasFieldEntry reports whether the managed fields have an entry.
func (o *shownObject) hasFieldEntry(entry *fieldEntry) bool {
	for i := range o.Metadata.ManagedFields {
		if o.Metadata.ManagedFields[i] == *entry {
			return true
		}
	}
	return false
}

// managerOf returns the field manager that has made after of before: the manager of the newest entry of after that is not
// in before. It returns nothing if no entry is new.
func managerOf(before, after *shownObject) string {
	newest := new(fieldEntry)
	for i := range after.Metadata.ManagedFields {
		entry := &after.Metadata.ManagedFields[i]
		if entry.Time >= newest.Time && !before.hasFieldEntry(entry) {
			newest = entry
		}
	}
	return shortened(newest.Manager, maxValue)
}
