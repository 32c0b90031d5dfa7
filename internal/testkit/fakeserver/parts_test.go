package fakeserver

import (
	"errors"
	"reflect"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/merge"
)

func TestStorePublishesChanges(t *testing.T) {
	t.Parallel()
	var got []change
	s := newStore(func(c change) { got = append(got, c) })
	id := objectID{"things", "default", "a"}
	first := s.putObject(id, map[string]any{})
	second := s.putObject(id, map[string]any{"spec": 1.0})
	s.removeObject(second, nil)
	want := []change{{version: 101, after: first}, {version: 102, before: first, after: second}, {version: 103, before: second}}
	if !reflect.DeepEqual(got, want) || len(s.objects) != 0 {
		t.Errorf("the changes %+v, not %+v, and the objects %v", got, want, s.objects)
	}
}

func TestFieldOwnership(t *testing.T) {
	t.Parallel()
	f := newFieldOwnership()
	one, two := manager{"one", "Apply", "v1", ""}, manager{"two", "Apply", "v1", ""}
	spec := func(size, color any) map[string]any {
		fields := map[string]any{}
		for name, v := range map[string]any{"size": size, "color": color} {
			if v != nil {
				fields[name] = v
			}
		}
		return map[string]any{"spec": fields}
	}
	live, err := f.apply(one, nil, spec(1.0, "red"), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.apply(two, live, spec(2.0, nil), false); !reflect.DeepEqual(fieldsOf(err), []string{".spec.size"}) {
		t.Errorf("an apply of the field of another manager: %v", err)
	}
	if live, err = f.apply(two, live, spec(2.0, nil), true); err != nil {
		t.Fatal(err)
	}
	if live, err = f.apply(one, live, spec(nil, nil), false); err != nil || !reflect.DeepEqual(live["spec"], spec(2.0, nil)["spec"]) {
		t.Errorf("after an apply of nothing: %v, %v", live, err)
	}
	patched := clone(live)
	patched["spec"].(map[string]any)["size"] = 3.0
	if err := f.recordUpdate(manager{"hand", "Update", "v1", ""}, live, patched); err != nil {
		t.Fatal(err)
	}
	owned, err := ownersOf(patched)
	if err != nil || owned.sets[two.key()] != nil {
		t.Errorf("after an update by hand, %v owns the size, %v", owned.sets, err)
	}
}

// fieldsOf returns the fields of conflicts.
func fieldsOf(err error) (fields []string) {
	conflicts, _ := errors.AsType[merge.Conflicts](err)
	for _, c := range conflicts {
		fields = append(fields, c.Path.String())
	}
	return fields
}
