package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// fieldSet is a set of fields in the notation of managedFields (FieldsV1): "f:NAME" is a member of an object,
// "k:{KEYS}" is the item of a list with these keys, "v:VALUE" is a value of a set, and "." is the object or item
// itself. The fields spec.replicas and the label team are
// {"f:metadata":{"f:labels":{"f:team":{}}},"f:spec":{"f:replicas":{}}}.
type fieldSet map[string]fieldSet

// parseFields returns the fields of an entry of managedFields.
func parseFields(f *metav1.FieldsV1) (fieldSet, error) {
	fields := make(fieldSet)
	if f == nil {
		return fields, nil
	}
	return fields, kube.Unmarshal(f.GetRawBytes(), &fields)
}

// encode returns the fields for an entry of managedFields.
func (s fieldSet) encode() (*metav1.FieldsV1, error) {
	raw, err := kube.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode fields: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}

// addAll adds the fields of other, which s may then share.
func (s fieldSet) addAll(other fieldSet) {
	for name, fields := range other {
		if own := s[name]; len(own) > 0 {
			own.addAll(fields)
		} else {
			s[name] = fields
		}
	}
}

// pathsMissing returns the sorted paths of the fields that value does not have and others do not contain. The path
// of a whole object stands for its fields. Of the fields {"f:spec":{"f:paused":{},"f:replicas":{}}} the value
// {"spec":{"paused":true}} lacks spec.replicas.
func (s fieldSet) pathsMissing(value any, others []fieldSet) []string {
	paths := s.appendMissing(nil, "", value, others)
	slices.Sort(paths)
	return paths
}

func (s fieldSet) appendMissing(paths []string, path string, value any, others []fieldSet) []string {
	for name, fields := range s {
		if name == "." {
			continue
		}
		child, childPath, isPresent := memberOf(value, path, name)
		var owners []fieldSet
		for _, other := range others {
			if f, ok := other[name]; ok {
				owners = append(owners, f)
			}
		}
		isLeaf := len(fields) == 0 || len(fields) == 1 && fields["."] != nil
		switch {
		case !isPresent && len(owners) == 0:
			paths = append(paths, childPath)
		case !isLeaf:
			paths = fields.appendMissing(paths, childPath, child, owners)
		}
	}
	return paths
}

// memberOf returns the part of value that an element of FieldsV1 names, and the path of the part.
func memberOf(value any, path, element string) (part any, partPath string, isPresent bool) {
	kind, rest, _ := strings.Cut(element, ":")
	if kind == "f" {
		object, _ := value.(map[string]any)
		part, isPresent = object[rest]
		return part, strings.TrimPrefix(path+"."+rest, "."), isPresent
	}
	partPath = path + "[" + rest + "]"
	list, _ := value.([]any)
	var wanted any
	if kube.Unmarshal([]byte(rest), &wanted) != nil {
		return nil, partPath, false
	}
	i := slices.IndexFunc(list, func(item any) bool {
		keys, hasKeys := wanted.(map[string]any)
		object, isObject := item.(map[string]any)
		if kind != "k" || !hasKeys || !isObject {
			return fmt.Sprint(item) == fmt.Sprint(wanted)
		}
		for name, key := range keys {
			// A key that has a default may be missing in the apply.
			if own, ok := object[name]; ok && fmt.Sprint(own) != fmt.Sprint(key) {
				return false
			}
		}
		return true
	})
	if i < 0 {
		return nil, partPath, false
	}
	return list[i], partPath, true
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
func (f *moveFilter) split(fields fieldSet, operation metav1.ManagedFieldsOperationType) fieldSet {
	moving := maps.Clone(fields)
	delete(moving, "f:metadata")
	metadata := fields["f:metadata"]
	for name := range moving {
		delete(fields, name)
	}
	movingMetadata := make(fieldSet)
	for _, member := range []string{"labels", "annotations"} {
		applied, _, _ := memberOf(f.body["metadata"], "", "f:"+member)
		moveElements(metadata, movingMetadata, "f:"+member, func(element string) bool {
			_, _, isApplied := memberOf(applied, "", element)
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
func moveElements(from, to fieldSet, member string, condition func(element string) bool) {
	elements, moving := from[member], make(fieldSet)
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
