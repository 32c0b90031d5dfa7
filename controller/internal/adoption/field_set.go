package adoption

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/jsonscan/fieldset"
	"github.com/yare-go/yare/kube"
)

// missingPaths returns the sorted paths of the fields that value does not have and others do not contain. The path
// of a whole object stands for its fields. Of the fields {"f:spec":{"f:paused":{},"f:replicas":{}}} the value
// {"spec":{"paused":true}} lacks spec.replicas.
func missingPaths(fields fieldset.Set, value any, others []fieldset.Set) []string {
	paths := appendMissing(nil, fields, "", value, others)
	slices.Sort(paths)
	return paths
}

func appendMissing(paths []string, fields fieldset.Set, path string, value any, others []fieldset.Set) []string {
	for element, below := range fields {
		if element == "." {
			continue
		}
		part, isPresent := fieldset.PartOf(value, element)
		var owners []fieldset.Set
		for _, other := range others {
			if set, ok := other[element]; ok {
				owners = append(owners, set)
			}
		}
		kind, name, _ := strings.Cut(element, ":")
		partPath := path + "[" + name + "]"
		if kind == "f" {
			partPath = strings.TrimPrefix(path+"."+name, ".")
		}
		if !isPresent && len(owners) == 0 {
			paths = append(paths, partPath)
		} else {
			paths = appendMissing(paths, below, partPath, part, owners)
		}
	}
	return paths
}

// moveFilter selects the fields of a former field manager that move.
type moveFilter struct {
	// body is the object of the apply.
	body  map[string]any
	owner types.UID
	// prefixes holds the prefixes of the keys of labels and annotations that always move.
	prefixes []string
}

// newMoveFilter returns the filter for the apply of an object as JSON.
func newMoveFilter(object []byte, owner types.UID, prefixes []string) (*moveFilter, error) {
	f := &moveFilter{owner: owner, prefixes: prefixes}
	return f, kube.Unmarshal(object, &f.body)
}

// split removes the fields that move from fields, and returns them.
func (f *moveFilter) split(fields fieldset.Set, operation metav1.ManagedFieldsOperationType) fieldset.Set {
	moving := maps.Clone(fields)
	delete(moving, "f:metadata")
	metadata := fields["f:metadata"]
	for name := range moving {
		delete(fields, name)
	}
	movingMetadata := make(fieldset.Set)
	for _, member := range []string{"labels", "annotations"} {
		applied, _ := fieldset.PartOf(f.body["metadata"], "f:"+member)
		moveElements(metadata, movingMetadata, "f:"+member, func(element string) bool {
			_, isApplied := fieldset.PartOf(applied, element)
			return operation == metav1.ManagedFieldsOperationApply || isApplied || f.hasPrefix(strings.TrimPrefix(element, "f:"))
		})
	}
	moveElements(metadata, movingMetadata, "f:ownerReferences", func(element string) bool {
		return strings.Contains(element, `"`+string(f.owner)+`"`)
	})
	if len(movingMetadata) > 0 {
		moving["f:metadata"] = movingMetadata
	}
	if len(metadata) == 0 {
		delete(fields, "f:metadata")
	}
	return moving
}

// hasPrefix reports whether the key of a label or annotation has a prefix whose keys move.
func (f *moveFilter) hasPrefix(key string) bool {
	return slices.ContainsFunc(f.prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// moveElements moves the elements of a member for which the condition holds from one set to another. The element "."
// goes with the last one.
func moveElements(from, to fieldset.Set, member string, condition func(element string) bool) {
	elements, moving := from[member], make(fieldset.Set)
	for element, fields := range elements {
		if element != "." && condition(element) {
			moving[element] = fields
			delete(elements, element)
		}
	}
	if len(moving) == 0 {
		return
	}
	if itself, ok := elements["."]; ok && len(elements) == 1 {
		moving["."] = itself
		delete(elements, ".")
	}
	if len(elements) == 0 {
		delete(from, member)
	}
	to[member] = moving
}
