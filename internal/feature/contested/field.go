// Package contested finds fields that a program sets back again and again, because somebody else changes them. Each of
// both would go on for ever, and none of them sees the other.
package contested

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/internal/jsonscan/fieldset"
	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// Field is a field that was set back.
type Field struct {
	// Path is the place in the object, such as .spec.replicas or .spec.containers[web].image.
	Path string
	// Manager is the field manager that owned the field before. It is empty if no other manager owned the field: somebody
	// has removed it.
	Manager string
}

// owner is a field manager with what it owns at one place of an object: see [fieldset.Set].
type owner struct {
	manager string
	set     fieldset.Set
}

// SetBack returns the fields that an apply has set back: those of the apply that differ between the object before and
// the object after it. applied is the content of the apply, and own is its field manager. All texts are JSON. For
// example:
//
//	applied  {"spec":{"replicas":2}}
//	before   {"spec":{"replicas":5}}, and managedFields say that "scaler" owns spec.replicas
//	after    {"spec":{"replicas":2}}
//
// The result is the field .spec.replicas of the manager "scaler". The items of a list are compared by the keys in
// managedFields. A list without such keys is one field.
func SetBack(applied, before, after []byte, own string) ([]Field, error) {
	var decoded [3]map[string]any
	for i, text := range [][]byte{applied, before, after} {
		if err := utiljson.Unmarshal(text, &decoded[i]); err != nil {
			return nil, fmt.Errorf("decode an object: %w", err)
		}
	}
	owners, err := ownersIn(before)
	if err != nil {
		return nil, err
	}
	// An item that somebody has removed has its keys in the managedFields of the object after the apply alone.
	restored, err := ownersIn(after)
	if err != nil {
		return nil, err
	}
	owners = append(owners, slices.DeleteFunc(restored, func(o owner) bool { return o.manager != own })...)
	c := comparison{own: own}
	c.compare("", decoded[0], decoded[1], decoded[2], owners)
	return c.fields, nil
}

// ownersIn returns the field managers of an object.
func ownersIn(object []byte) ([]owner, error) {
	var managed struct {
		Metadata struct {
			ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := kubejson.Unmarshal(object, &managed); err != nil {
		return nil, fmt.Errorf("decode managedFields: %w", err)
	}
	var owners []owner
	for _, e := range managed.Metadata.ManagedFields {
		if set, err := fieldset.Decode(e.FieldsV1); err == nil {
			owners = append(owners, owner{e.Manager, set})
		}
	}
	return owners, nil
}

// comparison collects fields. Fields of the manager own have no manager.
type comparison struct {
	own    string
	fields []Field
}

// compare adds the fields at path. owners own something there.
func (c *comparison) compare(path string, applied, before, after any, owners []owner) {
	if reflect.DeepEqual(before, after) {
		return
	}
	switch applied := applied.(type) {
	case map[string]any:
		b, isBefore := before.(map[string]any)
		a, isAfter := after.(map[string]any)
		if isBefore && isAfter && !isAtomic(owners) {
			c.compareMembers(path, applied, b, a, owners)
			return
		}
	case []any:
		b, isBefore := before.([]any)
		a, isAfter := after.([]any)
		if isBefore && isAfter && c.compareItems(path, applied, b, a, owners) {
			return
		}
	}
	manager := ""
	for _, o := range owners {
		if o.manager != c.own {
			manager = o.manager
		}
	}
	c.fields = append(c.fields, Field{path, manager})
}

// isAtomic reports whether an owner owns the place as a whole.
func isAtomic(owners []owner) bool {
	return slices.ContainsFunc(owners, func(o owner) bool { return len(o.set) == 0 })
}

// compareMembers adds the fields below an object.
func (c *comparison) compareMembers(path string, applied, before, after map[string]any, owners []owner) {
	names := make([]string, 0, len(applied))
	for name := range applied {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if path == ".metadata" && (name == "resourceVersion" || name == "uid") {
			continue // they are preconditions
		}
		if _, isSet := after[name]; !isSet {
			continue // the server has dropped the field
		}
		c.compare(path+MemberPath(name), applied[name], before[name], after[name], below(owners, "f:"+name))
	}
}

// compareItems adds the fields below the items of a list. It returns false if no owner knows keys of the items.
func (c *comparison) compareItems(path string, applied, before, after []any, owners []owner) bool {
	elements := map[string]bool{}
	for _, o := range owners {
		for element := range o.set {
			if strings.HasPrefix(element, "k:") {
				elements[element] = true
			}
		}
	}
	sorted := make([]string, 0, len(elements))
	for element := range elements {
		sorted = append(sorted, element)
	}
	slices.Sort(sorted)
	for _, element := range sorted {
		item, isItem := fieldset.ParseItem(element)
		w, b, a := item.IndexIn(applied, true), item.IndexIn(before, false), item.IndexIn(after, false)
		switch {
		case !isItem || w < 0 || a < 0:
		case b < 0:
			c.fields = append(c.fields, Field{Path: path + itemPath(item)})
		default:
			c.compare(path+itemPath(item), applied[w], before[b], after[a], below(owners, element))
		}
	}
	return len(sorted) > 0
}

// below returns the owners of something in the part that an element names.
func below(owners []owner, element string) (parts []owner) {
	for _, o := range owners {
		if set, ok := o.set[element]; ok {
			parts = append(parts, owner{o.manager, set})
		}
	}
	return parts
}

// MemberPath returns how a path goes on with a member: .replicas, or ["app.kubernetes.io/name"].
func MemberPath(name string) string {
	if name == "" || strings.ContainsAny(name, `.[]"/ `) {
		return "[" + strconv.Quote(name) + "]"
	}
	return "." + name
}

// itemPath returns how a path goes on with an item: [web], or [80,TCP] for two keys.
func itemPath(item fieldset.Item) string {
	names := make([]string, 0, len(item.Keys))
	for name := range item.Keys {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprint(item.Keys[name])
	}
	return "[" + strings.Join(names, ",") + "]"
}
