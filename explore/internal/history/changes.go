package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// Changes returns the changes by the versions of h after the first count versions: objects created or deleted,
// and fields that have another value. An object that was written without a change counts as a change of its
// resource version, unless times have changed in the object, such as that of a heartbeat.
func Changes(h History, count int, o Options) []finding.Difference {
	w := wordsOf(h)
	before, after := make(map[types.UID]Version), make(map[types.UID]Version)
	written := make(map[types.UID]int)
	for i, v := range h.Versions {
		switch {
		case i < count:
			before[v.UID] = v
		case !proxy.IsBackground(v.Resource):
			after[v.UID] = v
			written[v.UID]++
		}
	}
	var all []finding.Difference
	for uid, v := range after {
		object := w.objectOf(v)
		if o.Accepted.acceptDifference(object, "", faults.Idle) {
			continue
		}
		old, existed := before[uid]
		switch {
		case !existed || old.IsDeleted:
			all = append(all, finding.Difference{Object: object.String(), Got: finding.Exists})
		case v.IsDeleted:
			all = append(all, finding.Difference{Object: object.String(), Want: finding.Exists})
		default:
			changed, isAccepted := changedFields(object, fieldsOf(old, w, ownership{}), fieldsOf(v, w, ownership{}), o)
			if len(changed) == 0 && !isAccepted && isSameContent(old, v) {
				changed = []finding.Difference{{
					Object: object.String(), Path: "metadata.resourceVersion", Want: "unchanged",
					Got: fmt.Sprintf("%d more versions, and the same content in the end", written[uid]),
				}}
			}
			all = append(all, changed...)
		}
	}
	slices.SortFunc(all, func(a, b finding.Difference) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// changedFields returns the fields that have another value. isAccepted reports whether fields have changed
// whose changes are intended.
func changedFields(
	object faults.Object, before, after fields, o Options,
) (changed []finding.Difference, isAccepted bool) {
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	for path := range paths {
		switch old, now := before[path].value, after[path].value; {
		case old == now:
		case o.Accepted.acceptDifference(object, path, faults.Idle):
			isAccepted = true
		default:
			changed = append(changed, finding.Difference{Object: object.String(), Path: path, Want: old, Got: now})
		}
	}
	return changed, isAccepted
}

// isSameContent reports whether two versions of an object have the same content: all that the server does not keep
// itself.
func isSameContent(a, b Version) bool {
	content := func(v Version) map[string]any {
		all := maps.Clone(v.Object)
		metadata, _ := all["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		for _, name := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp"} {
			delete(metadata, name)
		}
		all["metadata"] = metadata
		return all
	}
	return isSameJSON(content(a), content(b))
}
