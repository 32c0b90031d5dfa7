package kube_test

import (
	gocmp "cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/yare-go/yare/internal/testkit/serverminor"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// Every served resource of the groups of k8s.io/api, if it has a Go type there, is in the table as
// the server serves it. The server serves every resource in the table of a version that it serves.
func TestTableAgreesWithTheServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	type row struct {
		Plural  string
		Cluster bool
	}
	served := make(map[schema.GroupVersionKind]row)
	withStatus := make(map[string]bool) // the paths of resources with a status subresource
	versions := make(map[schema.GroupVersion]bool)
	discover := func(path string) *metav1.APIResourceList {
		list := &metav1.APIResourceList{}
		if err := json.Unmarshal([]byte(cluster.Kubectl(t, "", "get", "--raw", path)), list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	collect := func(path string, gv schema.GroupVersion) {
		versions[gv] = true
		for _, r := range discover(path).APIResources {
			if plural, subresource, ok := strings.Cut(r.Name, "/"); !ok {
				served[gv.WithKind(r.Kind)] = row{r.Name, !r.Namespaced}
			} else if subresource == "status" {
				withStatus[gv.String()+" "+plural] = true
			}
		}
	}
	collect("/api/v1", corev1.SchemeGroupVersion)
	var groups metav1.APIGroupList
	if err := json.Unmarshal([]byte(cluster.Kubectl(t, "", "get", "--raw", "/apis")), &groups); err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			if scheme.Scheme.IsVersionRegistered(gv) {
				collect("/apis/"+version.GroupVersion, gv)
			}
		}
	}
	if len(served) < 50 {
		t.Fatalf("the server serves %d resources only", len(served))
	}

	minor := serverminor.OfAPIs(t, cluster)
	serverMinor := strconv.Itoa(minor)

	for gvk, want := range served {
		made, err := scheme.Scheme.New(gvk)
		if err != nil {
			// The server is older than k8s.io/api, which may have dropped a type; then it
			// is among the types of that older version still.
			if !typeOfVersion(t, serverMinor, gvk) {
				t.Errorf("k8s.io/api never had a type for %s", gvk)
			}
			continue
		}
		obj, ok := made.(kube.Object)
		if !ok {
			t.Errorf("%s is no object", gvk)
			continue
		}
		typ, err := kube.TypeOfObject(obj)
		if err != nil {
			t.Errorf("the server serves %s: %v", gvk, err)
			continue
		}
		if diff := cmp.Diff(want, row{typ.Resource.Plural, typ.Resource.ClusterScoped}); diff != "" || typ.Resource.GroupVersionKind != gvk {
			t.Errorf("%s: %s", gvk, diff)
		}
		// An apply sends no status of a built-in type. A review is a question, which is created. CSINodes have a status
		// since 1.37.
		isNewer := gvk.Kind == "CSINode" && minor < 37
		if typ.HasStatus() && !isNewer && !withStatus[gvk.GroupVersion().String()+" "+typ.Resource.Plural] && !strings.HasSuffix(gvk.Kind, "Review") {
			t.Errorf("%s has a status and no status subresource", gvk)
		}
	}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if !versions[gvk.GroupVersion()] {
			continue // is not served, by default or any more
		}
		made, err := scheme.Scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		obj, ok := made.(kube.Object)
		if !ok {
			continue
		}
		if _, err := kube.TypeOfObject(obj); err == nil {
			// What k8s.io/api did not have in the server's version is newer than it.
			if _, ok := served[gvk]; !ok && typeOfVersion(t, serverMinor, gvk) {
				t.Errorf("%s is in the table, but the server does not serve it", gvk)
			}
		}
	}
}

// typeOfVersion reports whether k8s.io/api had a type in an older version, by the fixtures
// that it keeps of its last four.
func typeOfVersion(t *testing.T, minor string, gvk schema.GroupVersionKind) bool {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	fixtures := filepath.Join(strings.TrimSpace(string(dir)), "testdata", "v1."+minor+".0")
	if _, err := os.Stat(fixtures); err != nil {
		t.Fatalf("k8s.io/api has no fixtures of the server's version: %v", err)
	}
	name := gocmp.Or(gvk.Group, "core") + "." + gvk.Version + "." + gvk.Kind + ".json"
	_, err = os.Stat(filepath.Join(fixtures, name))
	return err == nil
}
