package history_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/history"
)

// run makes up the history of a run.
type run struct {
	t    *testing.T
	now  time.Time
	step int
	history.History
}

// newRun returns a run in a namespace that began at some time.
func newRun(t *testing.T, namespace string) *run {
	began := time.Date(2026, 5, 1, 12, 0, len(namespace), 0, time.UTC)
	return &run{t: t, now: began, History: history.History{Namespaces: []string{namespace}}}
}

// uid returns the uid of the nth object of the run.
func (r *run) uid(n int) types.UID {
	return types.UID(fmt.Sprintf("6f1c0b3d-e0a9-4c27-8a11-%08x%04x", len(r.Namespaces[0]), n))
}

// live returns the newest version of an object that exists.
func (r *run) live(resource, name string) *history.Version {
	for _, v := range slices.Backward(r.Versions) {
		if v.Resource == resource && v.Name == name {
			if v.IsDeleted {
				return nil
			}
			return &v
		}
	}
	return nil
}

// write adds a version of an object with the members of content. content is JSON in which NS stands
// for the namespace, and NOW for the time. The field manager "operator" owns the fields.
func (r *run) write(resource, name, content string, owned ...string) *run {
	r.t.Helper()
	return r.writeAs("operator", resource, name, content, owned...)
}

func (r *run) writeAs(manager, resource, name, content string, owned ...string) *run {
	r.t.Helper()
	r.now = r.now.Add(time.Second)
	content = strings.NewReplacer("NS", r.Namespaces[0], "NOW", r.now.Format(time.RFC3339)).Replace(content)
	object := make(map[string]any)
	if err := json.Unmarshal([]byte(content), &object); err != nil {
		r.t.Fatalf("%s: %v", content, err)
	}
	plural, group, _ := strings.Cut(resource, ".")
	object["apiVersion"], object["kind"] = strings.TrimPrefix(group+"/v1", "/"), plural
	u := unstructured.Unstructured{Object: object}
	u.SetNamespace(r.Namespaces[0])
	u.SetName(name)
	u.SetResourceVersion(fmt.Sprint(len(r.Versions) + 1))
	u.SetUID(r.uid(len(r.Versions)))
	object["metadata"].(map[string]any)["creationTimestamp"] = r.now.Format(time.RFC3339)
	if before := r.live(resource, name); before != nil {
		u.SetUID(before.UID)
	}
	object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{
		"manager": manager, "operation": "Apply", "time": r.now.Format(time.RFC3339), "fieldsV1": fieldSet(owned),
	}}
	r.add(resource, u.Object, false)
	r.Versions[len(r.Versions)-1].Manager = manager
	return r
}

// fieldSet returns the FieldsV1 of paths such as spec.replicas.
func fieldSet(paths []string) map[string]any {
	set := make(map[string]any)
	for _, path := range paths {
		at := set
		for _, name := range strings.Split(path, ".") {
			inner, _ := at["f:"+name].(map[string]any)
			if inner == nil {
				inner = make(map[string]any)
				at["f:"+name] = inner
			}
			at = inner
		}
	}
	return set
}

// delete adds the deletion of an object.
func (r *run) delete(resource, name string) *run {
	r.t.Helper()
	before := r.live(resource, name)
	if before == nil {
		r.t.Fatalf("%s/%s does not exist", resource, name)
	}
	r.now = r.now.Add(time.Second)
	last := (&unstructured.Unstructured{Object: before.Object}).DeepCopy()
	last.SetResourceVersion(fmt.Sprint(len(r.Versions) + 1))
	return r.add(resource, last.Object, true)
}

func (r *run) add(resource string, object map[string]any, isDeleted bool) *run {
	u := unstructured.Unstructured{Object: object}
	r.Versions = append(r.Versions, history.Version{
		Resource: resource, Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		Object: object, IsDeleted: isDeleted, At: r.now, Step: r.step,
	})
	return r
}

// next begins the next step.
func (r *run) next() *run {
	r.step++
	return r
}

// lines returns the texts of all, for comparisons.
func lines[T fmt.Stringer](all []T) []string {
	texts := make([]string, len(all))
	for i, each := range all {
		texts[i] = each.String()
	}
	return texts
}

// expect checks that each text contains what is wanted at its place, and no text is left over.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range got {
		ok = ok && strings.Contains(got[i], want[i])
	}
	if !ok {
		t.Errorf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
