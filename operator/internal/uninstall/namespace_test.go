package uninstall

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/operator/internal/manifests"
)

// A namespace that existed before is not removed, whoever made it and however shortly before.
func TestNamespaceThatExistedBefore(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := func(after time.Duration, labels ...string) metav1.ManagedFieldsEntry {
		text := `{"f:metadata":{"f:labels":{`
		for _, label := range labels {
			text += `"f:` + label + `":{},`
		}
		at := metav1.NewTime(created.Add(after))
		return metav1.ManagedFieldsEntry{Time: &at, FieldsV1: metav1.NewFieldsV1(text + `".":{}}}}`)}
	}
	name := "kubernetes.io/metadata.name"
	for what, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"server-side apply creates it":            {[]metav1.ManagedFieldsEntry{entry(0, manifests.LabelInstance)}, true},
		"a second begins in between":              {[]metav1.ManagedFieldsEntry{entry(-time.Second, manifests.LabelInstance)}, true},
		"client-side apply creates it":            {[]metav1.ManagedFieldsEntry{entry(0, name, manifests.LabelInstance)}, true},
		"somebody labels it later":                {[]metav1.ManagedFieldsEntry{entry(0, manifests.LabelInstance), entry(time.Hour, "team")}, true},
		"it existed for an hour":                  {[]metav1.ManagedFieldsEntry{entry(0, name), entry(time.Hour, manifests.LabelInstance)}, false},
		"it existed for a moment":                 {[]metav1.ManagedFieldsEntry{entry(0, name), entry(0, manifests.LabelInstance)}, false},
		"somebody else sets its name":             {[]metav1.ManagedFieldsEntry{entry(0), entry(0, manifests.LabelInstance)}, false},
		"an apply had created it two seconds ago": {[]metav1.ManagedFieldsEntry{entry(2*time.Second, manifests.LabelInstance)}, false},
		"nobody recorded anything":                {nil, false},
	} {
		o := &metadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created), ManagedFields: c.entries}}
		if got := isCreatedWithLabels(o); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// The namespaces that a program watches are found in its arguments, however they are written.
func TestWatchedNamespacesOfADeployment(t *testing.T) {
	t.Parallel()
	d := new(deployment)
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, struct {
		Args []string `json:"args"`
	}{[]string{"run", "--watch-namespace=b", "-watch-namespace", "a", "--watch-namespace=b", "--bucket=watch-namespace=c", "-v"}})
	if got := d.watched(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("the namespaces are %q", got)
	}
}
