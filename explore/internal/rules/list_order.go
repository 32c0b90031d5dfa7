package rules

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/ident"
)

// changesOfOrder returns the versions of the program in which a list of a Pod template has another order and the same
// items, while the lists of the owner are the same. Another order rolls all Pods. A program that has written one other
// order may have learned something. Two of them have no cause.
func changesOfOrder(r *Run) (all []Violation) {
	counts := make(map[string]int)
	for _, s := range r.successors() {
		if r.writeOf(s) == nil || len(history.Managers(s.after)) != 1 {
			continue
		}
		for _, path := range reorderedLists(s.before.Object, s.after.Object) {
			if !hasOwnerSameLists(r, s) {
				continue
			}
			object := r.Object(s.after)
			key := object.String() + path
			counts[key]++
			v := Violation{
				Severity: Warning, Object: object, Paths: []string{path}, Effect: "reordered", Step: s.after.Step, At: s.after.At,
				Text:     fmt.Sprintf("The items of a list of %s have another order, and are the same", object),
				Evidence: fmt.Sprintf("The program wrote the list in another order %s, while the lists of its owner did not change. Another order rolls all Pods", r.timeText(s.after)),
			}
			if counts[key] > 1 {
				v.Severity = Failure
				v.Evidence = fmt.Sprintf("The program has written the list in another order %d times by then, %s, while the lists of its owner did not change. Another order rolls all Pods", counts[key], r.timeText(s.after))
			}
			all = append(all, v)
		}
	}
	return all
}

// hasOwnerSameLists reports whether the lists in the spec of the controller of an object were the same at two versions
// of the object. The user may have changed their order otherwise.
func hasOwnerSameLists(r *Run, s successor) bool {
	owner := controllerOf(s.after)
	if owner == "" || controllerOf(s.before) != owner {
		return false
	}
	lists := func(until history.Version) []string {
		var spec any
		for _, v := range r.Versions {
			if v.UID == owner && !ident.IsNewer(v.ResourceVersion, until.ResourceVersion) {
				spec = v.Object["spec"]
			}
		}
		return listsIn("spec", spec)
	}
	return slices.Equal(lists(s.before), lists(s.after))
}

// listsIn returns the lists in a value as texts with their paths, sorted.
func listsIn(path string, value any) (all []string) {
	switch value := value.(type) {
	case []any:
		return []string{path + " " + fmt.Sprint(value)}
	case map[string]any:
		for name, inner := range value {
			all = append(all, listsIn(path+"."+name, inner)...)
		}
	}
	slices.Sort(all)
	return all
}

// reorderedLists returns the paths of the lists of Pod templates that have the same items in another order.
func reorderedLists(before, after map[string]any) (paths []string) {
	for _, at := range [][]string{{"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}} {
		for _, list := range []string{"containers", "initContainers"} {
			path := append(slices.Clone(at), list)
			old, _, _ := unstructured.NestedFieldNoCopy(before, path...)
			now, _, _ := unstructured.NestedFieldNoCopy(after, path...)
			oldItems, _ := old.([]any)
			nowItems, _ := now.([]any)
			text := strings.Join(path, ".")
			if isReordered(namesOf(oldItems), namesOf(nowItems)) {
				paths = append(paths, text)
			}
			for _, item := range nowItems {
				container, _ := item.(map[string]any)
				name, _ := container["name"].(string)
				i := slices.IndexFunc(oldItems, func(o any) bool { m, _ := o.(map[string]any); return m["name"] == name })
				if i < 0 {
					continue
				}
				former, _ := oldItems[i].(map[string]any)
				for _, field := range []string{"env", "envFrom", "args", "command"} {
					if isReordered(texts(former[field]), texts(container[field])) {
						paths = append(paths, fmt.Sprintf("%s[name=%s].%s", text, name, field))
					}
				}
			}
		}
	}
	return paths
}

// namesOf returns the names of items.
func namesOf(items []any) (names []string) {
	for _, item := range items {
		m, _ := item.(map[string]any)
		names = append(names, fmt.Sprint(m["name"]))
	}
	return names
}

// texts returns the items of a list as texts.
func texts(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		all = append(all, fmt.Sprint(item)) // maps are printed in the order of their keys
	}
	return all
}

// isReordered reports whether two lists have the same items in another order.
func isReordered(a, b []string) bool {
	return !slices.Equal(a, b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
