package history

import (
	"reflect"
	"slices"
)

// writerOf returns the field manager that wrote the second of two versions of an object, as far as managedFields show it: the
// manager with a new entry, or else a manager that owns a changed field.
func writerOf(before, after Version) string {
	old := managedFields(before.Object)
	newest, newestTime := "", ""
	for _, entry := range managedFields(after.Object) {
		isOld := slices.ContainsFunc(old, func(o map[string]any) bool { return reflect.DeepEqual(o, entry) })
		manager, _ := entry["manager"].(string)
		if at, _ := entry["time"].(string); !isOld && at >= newestTime {
			newest, newestTime = manager, at
		}
	}
	if newest != "" || before.Object == nil {
		return newest
	}
	// The times of the entries are in seconds: a second write of a manager in the same second leaves its
	// entry unchanged.
	noWords := &words{names: NewNames()}
	fields := fieldsOf(before, noWords, ownership{})
	for _, entry := range managedFields(after.Object) {
		manager, _ := entry["manager"].(string)
		owned := ownershipOf(after.Object, func(m string) bool { return m == manager })
		for path, f := range fieldsOf(after, noWords, owned) {
			if f.isOwned && f.value != fields[path].value {
				return manager
			}
		}
	}
	return ""
}
