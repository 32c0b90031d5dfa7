package fakeserver

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// fieldSet is a set of fields in the form of FieldsV1: a member is a node without children, or
// a node with the child ".".
type fieldSet = map[string]any

// listKey returns the key of the items of an associative list, by the name of its field. A set
// has the key "". Every other list is atomic.
func listKey(field string) (key string, associative bool) {
	switch field {
	case "finalizers":
		return "", true
	case "ownerReferences":
		return "uid", true
	case "conditions":
		return "type", true
	case "containers", "initContainers", "volumes", "env":
		return "name", true
	}
	return "", false
}

// manager is who owns the fields that a request sets.
type manager struct{ name, operation, apiVersion, subresource string }

func managerOf(r *kube.Request) manager {
	m := manager{cmp.Or(r.Query.Get("fieldManager"), "unknown"), "Update", r.Resource.GroupVersion().String(), r.Subresource}
	if r.ContentType == kube.ContentApply {
		m.operation = "Apply"
	}
	return m
}

func (m manager) is(entry map[string]any) bool {
	return entry["manager"] == m.name && entry["operation"] == m.operation && textOf(entry, "subresource") == m.subresource
}

// apply serves a server-side apply.
func (s *Server) apply(r *kube.Request) (*kube.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	if r.Query.Get("fieldManager") == "" {
		return nil, invalidOptions(r, "PatchOptions", metav1.CauseTypeFieldValueRequired, "fieldManager")
	}
	metadata := metadataOf(body)
	if metadata["managedFields"] != nil {
		return nil, badRequest(r, "metadata.managedFields must be nil")
	}
	if textOf(metadata, "name") != r.Name {
		return nil, badRequest(r, fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", textOf(metadata, "name"), r.Name))
	}
	wanted := fieldsOf(body, "")
	if r.Subresource == "status" {
		wanted = only(wanted, "f:status")
	} else {
		delete(wanted, "f:status")
	}
	live := s.objects[idOf(r)]
	if live == nil {
		switch {
		case r.Subresource != "":
			return nil, Refusal(r, http.StatusNotFound, metav1.StatusReasonNotFound)
		case metadata["uid"] != nil:
			return nil, refusalOf(r, http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf("uid mismatch: the provided object specified uid %s, and no existing object was found", metadata["uid"]))
		}
		// A real server ignores the resourceVersion of an apply that creates.
		delete(metadata, "resourceVersion")
		delete(body, "status")
		return s.storeNew(r, idOf(r), body, func() { setOwned(body, managerOf(r), wanted, now()) })
	}
	if uid := metadata["uid"]; uid != nil && r.Subresource == "" && uid != metadataOf(live.content)["uid"] {
		return nil, invalid(r, metav1.CauseTypeFieldValueInvalid, "metadata.uid")
	}
	content, conflicts := s.applied(r, live.content, body, wanted)
	if len(conflicts) > 0 {
		e := refusalOf(r, http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf("Apply failed with %d conflicts", len(conflicts)))
		e.Answer.Details = &metav1.StatusDetails{Causes: conflicts}
		return nil, e
	}
	if v := metadata["resourceVersion"]; v != nil {
		metadataOf(content)["resourceVersion"] = v
	}
	return s.replace(r, live, content, func(content map[string]any) {
		// Another uid in an apply of a status has no effect but this one.
		m, uid := managerOf(r), metadata["uid"]
		time := timeOf(content, m)
		if uid != nil && uid != metadataOf(live.content)["uid"] || !reflect.DeepEqual(unmanaged(live.content), unmanaged(content)) {
			time = now()
		}
		setOwned(content, m, wanted, time)
	})
}

// applied returns live after an apply of body, with the entries of other managers as they are
// afterwards.
func (s *Server) applied(r *kube.Request, live, body map[string]any, wanted fieldSet) (map[string]any, []metav1.StatusCause) {
	content := clone(live)
	var conflicts []metav1.StatusCause
	var former fieldSet
	others := fieldSet{}
	for _, each := range listOf(metadataOf(content), "managedFields") {
		entry := each.(map[string]any)
		owned, _ := entry["fieldsV1"].(fieldSet)
		if managerOf(r).is(entry) {
			former = owned
			continue
		}
		contested(owned, wanted, live, body, "", "", func(path string) bool {
			if r.Query.Get("force") == "true" {
				return true
			}
			conflicts = append(conflicts, metav1.StatusCause{
				Type: metav1.CauseTypeFieldManagerConflict, Field: path, Message: fmt.Sprintf("conflict with %q", entry["manager"]),
			})
			return false
		})
		others = union(others, owned)
	}
	merged := merge(content, restricted(body, r.Subresource), "").(map[string]any)
	prune(merged, minus(minus(clone(former), wanted), others), others, "")
	return merged, conflicts
}

// restricted returns the part of an applied object that the request may change.
func restricted(body map[string]any, subresource string) map[string]any {
	rest := make(map[string]any, len(body))
	for k, v := range body {
		switch {
		case k == "apiVersion" || k == "kind" || (k == "status") != (subresource == "status"):
		case k == "metadata":
			metadata := clone(v.(map[string]any))
			delete(metadata, "uid")
			delete(metadata, "resourceVersion")
			rest[k] = metadata
		default:
			rest[k] = clone(v)
		}
	}
	return rest
}

// fieldsOf returns the fields that an apply of an object, or of a value in the given field, sets.
// Fields that nobody owns are left out.
func fieldsOf(v any, field string) fieldSet {
	set := fieldSet{}
	switch v := v.(type) {
	case map[string]any:
		for k, each := range v {
			set["f:"+k] = fieldsOf(each, k)
		}
		if field == "" {
			delete(set, "f:apiVersion")
			delete(set, "f:kind")
			if metadata, ok := set["f:metadata"].(fieldSet); ok {
				for _, k := range []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
					"deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"} {
					delete(metadata, "f:"+k)
				}
				if len(metadata) == 0 {
					delete(set, "f:metadata")
				}
			}
		}
	case []any:
		key, associative := listKey(field)
		if !associative {
			return set
		}
		for _, item := range v {
			child := fieldSet{}
			if key != "" {
				child = fieldsOf(item, "item")
				child["."] = fieldSet{}
			}
			set[itemName(item, key)] = child
		}
	}
	return set
}

// itemName returns how FieldsV1 names an item of an associative list.
func itemName(item any, key string) string {
	if key == "" {
		return "v:" + string(encode(item))
	}
	m, _ := item.(map[string]any)
	return "k:" + string(encode(map[string]any{key: m[key]}))
}

// child returns the part of node, which is in the given field, that a FieldsV1 node of this name stands for.
func child(node any, field, name string) any {
	switch node := node.(type) {
	case map[string]any:
		return node[strings.TrimPrefix(name, "f:")]
	case []any:
		key, _ := listKey(field)
		for _, item := range node {
			if itemName(item, key) == name {
				return item
			}
		}
	}
	return nil
}

func fieldName(name string) string {
	if field, ok := strings.CutPrefix(name, "f:"); ok {
		return field
	}
	return "item"
}

// contested calls give for each field in both sets whose value differs between live and body.
// If give returns true, the field is removed from owned.
func contested(owned, wanted fieldSet, live, body any, field, path string, give func(path string) bool) {
	for name, w := range wanted {
		o, both := owned[name].(fieldSet)
		if !both || name == "." {
			continue
		}
		l, b, at := child(live, field, name), child(body, field, name), path+"."+fieldName(name)
		switch {
		case len(o) > 0:
			contested(o, w.(fieldSet), l, b, fieldName(name), at, give)
			if len(o) == 0 {
				delete(owned, name)
			}
		case len(w.(fieldSet)) == 0 && !reflect.DeepEqual(l, b) && give(at):
			delete(owned, name)
		}
	}
}

// merge returns live with the fields that body sets.
func merge(live, body any, field string) any {
	switch b := body.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return body
		}
		for k, v := range b {
			l[k] = merge(l[k], v, k)
		}
		return l
	case []any:
		key, associative := listKey(field)
		l, ok := live.([]any)
		if !associative || !ok {
			return body
		}
		for _, item := range b {
			same := func(other any) bool { return itemName(other, key) == itemName(item, key) }
			if i := slices.IndexFunc(l, same); i >= 0 {
				l[i] = merge(l[i], item, "item")
			} else {
				l = append(l, item)
			}
		}
		return l
	}
	return body
}

// prune removes the fields in removed from node, unless something below them is in kept.
func prune(node any, removed, kept fieldSet, field string) any {
	for name, r := range removed {
		if name == "." {
			continue
		}
		set := r.(fieldSet)
		below, keep := kept[name].(fieldSet)
		drop := isMember(set) && !keep
		switch parent := node.(type) {
		case map[string]any:
			k := fieldName(name)
			if _, has := parent[k]; !has {
				continue
			}
			if !drop {
				parent[k] = prune(parent[k], set, below, k)
				drop = isEmptied(parent[k], field)
			}
			if drop {
				delete(parent, k)
			}
		case []any:
			key, _ := listKey(field)
			is := func(item any) bool { return itemName(item, key) == name }
			if drop {
				node = slices.DeleteFunc(parent, is)
			} else if i := slices.IndexFunc(parent, is); i >= 0 {
				parent[i] = prune(parent[i], set, below, "item")
			}
		}
	}
	return node
}

// isEmptied reports whether a value that lost a field is left out of its parent, which is in the
// given field.
func isEmptied(v any, parent string) bool {
	if list, ok := v.([]any); ok {
		return len(list) == 0
	}
	m, ok := v.(map[string]any)
	return ok && len(m) == 0 && parent == "metadata"
}

func isMember(set fieldSet) bool {
	_, member := set["."]
	return member || len(set) == 0
}

func union(a, b fieldSet) fieldSet {
	for name, v := range b {
		if child, ok := a[name].(fieldSet); ok {
			union(child, v.(fieldSet))
		} else {
			a[name] = clone(v)
		}
	}
	return a
}

// minus removes the members of b from a.
func minus(a, b fieldSet) fieldSet {
	for name, v := range b {
		own, ok := a[name].(fieldSet)
		if !ok || name == "." {
			continue
		}
		other := v.(fieldSet)
		if len(own) > 0 {
			if isMember(other) {
				delete(own, ".")
			}
			if minus(own, other); len(own) > 0 {
				continue
			}
		} else if !isMember(other) {
			continue
		}
		delete(a, name)
	}
	return a
}

func only(set fieldSet, name string) fieldSet {
	if v, ok := set[name]; ok {
		return fieldSet{name: v}
	}
	return fieldSet{}
}
