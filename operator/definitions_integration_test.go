package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yare-go/yare/yaretest"
)

type groupOfDowngrades struct{}

func (groupOfDowngrades) Group() string { return "downgrades.example.com" }

// A definition of an earlier release over the definition of a later one lost the values of the fields that the earlier
// one lacks, and --check found nothing wrong.
func TestManifestsOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfDowngrades](t)
	i.apply()
	i.cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+i.robots.String())
	if status, _, stderr := i.call("manifests", "--image=i:1", "--check"); status != 0 {
		t.Fatalf("the same definition: status %d, %s", status, stderr)
	}
	if status, stdout, stderr := i.call("crd", "--diff", "cluster"); status != 0 || stdout != "" || stderr != "" {
		t.Errorf("the same definition: status %d, %s%s", status, stdout, stderr)
	}
	// The definition of a later release has one field more, and allows more arms.
	const later = `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/backup","value":{"type":"string"}}]`
	i.cluster.Kubectl(t, "", "patch", "crd", i.robots.String(), "--type=json", "-p", later)
	status, stdout, stderr := i.call("crd", "--diff", "cluster")
	if want := i.robots.String() + " v1 .spec.backup: " + i.name + " has nothing, the cluster has a field of the type string\n"; status != 1 || !strings.HasSuffix(stdout, want) {
		t.Errorf("status %d, %q does not end with %q: %s", status, stdout, want, stderr)
	}
	namespace := i.cluster.Namespace(t)
	for name, spec := range map[string]string{"a": "{backup: daily}", "b": "{arms: 2}"} {
		object := fmt.Sprintf("apiVersion: %s/v1\nkind: Robot\nmetadata: {name: %s, namespace: %s}\nspec: %s\n", i.robots.Group, name, namespace, spec)
		yaretest.Eventually(t, func() error { // the new definition is served after a moment
			_, stderr, err := i.cluster.TryKubectl(t, object, "apply", "--server-side", "-f", "-")
			if err != nil {
				return fmt.Errorf("%w: %s", err, stderr)
			}
			return nil
		})
	}
	status, stdout, stderr = i.call("manifests", "--image=i:1", "--check")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "spec.backup in version v1 is missing") || !strings.Contains(stderr, "this concerns 1 of 2 objects") ||
		!strings.Contains(stderr, "--without-definitions") || strings.Contains(stderr, "arms") {
		t.Errorf("status %d\n%s\n%s", status, stderr, stdout)
	}
	status, stdout, stderr = i.call("manifests", "--image=i:1", "--check", "--without-definitions")
	if status != 0 || strings.Contains(stdout, "CustomResourceDefinition") || !strings.Contains(stdout, "kind: Deployment") {
		t.Errorf("without definitions: status %d\n%s\n%s", status, stderr, stdout)
	}
}
