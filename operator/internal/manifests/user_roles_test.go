package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/crd"
)

// Nobody but administrators of the cluster could use a kind until somebody wrote roles for it. The roles belong to the
// definition: no installation has them, so neither prune nor uninstall of an installation selects them.
func TestUserRoles(t *testing.T) {
	t.Parallel()
	definition := &crd.CustomResourceDefinition{Spec: crd.Spec{
		Group: "example.com", Names: crd.Names{Plural: "robots"},
		Versions: []crd.Version{{Name: "v1", Subresources: &crd.Subresources{Status: new(struct{}), Scale: new(crd.Scale)}}},
	}}
	definition.Kind, definition.Metadata.Name = "CustomResourceDefinition", "robots.example.com"
	o := &Options{Installation: Installation{Program: "robots", Name: "robots", Namespace: "n"}, Choices: Choices{Replicas: 1}, Definitions: []*crd.CustomResourceDefinition{definition}}
	objects, err := Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	o.AddLabels(objects)
	prune := o.AddObjectHashes(objects)
	may := make(map[string][]string)
	for _, object := range objects {
		level, isUserRole := strings.CutPrefix(Name(object), "robots.example.com-")
		if !isUserRole {
			continue
		}
		labels := ObjectAt(object, "metadata", "labels")
		if labels[LabelInstance] != nil || labels[LabelNamespace] != nil || labels[LabelObject] != nil || labels["rbac.authorization.k8s.io/aggregate-to-"+level] != "true" {
			t.Errorf("%s has the labels %v", Name(object), labels)
		}
		for _, rule := range object["rules"].([]any) {
			for _, resource := range textsOf(rule.(Object)["resources"]) {
				for _, verb := range textsOf(rule.(Object)["verbs"]) {
					may[level] = append(may[level], verb+" "+resource)
				}
			}
		}
	}
	for level, test := range map[string]struct{ may, mayNot []string }{
		"view":  {[]string{"watch robots", "get robots/status", "get robots/scale"}, []string{"create robots", "patch robots", "patch robots/scale", "patch robots/status"}},
		"edit":  {[]string{"get robots", "create robots", "patch robots", "delete robots", "deletecollection robots", "patch robots/scale"}, []string{"patch robots/status", "update robots/finalizers"}},
		"admin": {[]string{"get robots", "delete robots", "patch robots/status"}, []string{"update robots/finalizers"}},
	} {
		for _, p := range test.may {
			if !slices.Contains(may[level], p) {
				t.Errorf("%s may not %s", level, p)
			}
		}
		for _, p := range test.mayNot {
			if slices.Contains(may[level], p) {
				t.Errorf("%s may %s", level, p)
			}
		}
	}
	if !strings.Contains(prune, LabelObject+" notin (") {
		t.Errorf("the command that prunes is %s", prune)
	}
}
