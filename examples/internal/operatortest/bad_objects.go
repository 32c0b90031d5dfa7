package operatortest

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// badObjects are objects that were stored before the schema refused them.
type badObjects struct {
	Operator
	cluster            *yaretest.Cluster
	program, namespace string
}

// newBadObjects applies a definition that allows everything, stores the bad objects, and then applies
// the true definition.
func newBadObjects(t *testing.T, o Operator, cluster *yaretest.Cluster, program string) *badObjects {
	t.Helper()
	s := &badObjects{o, cluster, program, cluster.Namespace(t)}
	strict := printedDefinition(t, s.program)
	definition := parse(t, strings.TrimPrefix(strict, "---\n"))[0]
	versions := definition.Object["spec"].(map[string]any)["versions"].([]any)
	versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true,
	}}
	loose, err := yaml.Marshal(definition.Object)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(text string) {
		s.cluster.Kubectl(t, text, "apply", "--server-side", "--force-conflicts", "-f", "-")
		s.cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+definition.GetName())
	}
	apply(string(loose))
	for _, bad := range s.Bad {
		yaretest.Eventually(t, func() error { // the server takes its time with a new definition
			_, stderr, err := s.cluster.TryKubectl(t, s.withSpec(bad.Name, bad.Spec),
				"create", "--validate=false", "--namespace", s.namespace, "-f", "-")
			if err != nil && !strings.Contains(stderr, "AlreadyExists") {
				return fmt.Errorf("%w: %s", err, stderr)
			}
			return nil
		})
	}
	apply(strict)
	for _, bad := range s.Bad {
		yaretest.Eventually(t, func() error { return s.checkRefused(t, bad) })
	}
	return s
}

// checkRefused returns nil if the schema refuses a bad object and names the field.
func (s *badObjects) checkRefused(t *testing.T, bad BadObject) error {
	_, stderr, err := s.cluster.TryKubectl(t, s.withSpec(bad.Name+"-2", bad.Spec),
		"create", "--validate=false", "--dry-run=server", "--namespace", s.namespace, "-f", "-")
	switch {
	case err == nil:
		return fmt.Errorf("the schema allows the spec %s", bad.Spec)
	case !strings.Contains(stderr, bad.Field):
		return fmt.Errorf("the spec %s is refused without the field's name, %s: %s", bad.Spec, bad.Field, stderr)
	}
	return nil
}

// withSpec returns an object with a spec, as YAML.
func (s *badObjects) withSpec(name, spec string) string {
	return fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n",
		s.Resource.Group, s.Resource.Version, s.Resource.Kind, name, spec)
}

// test checks that objects which were stored before the schema refused them are reported, once per change, while the other
// objects are reconciled. The objects become ready when they are repaired.
func (s *badObjects) test(t *testing.T) {
	r := newOperatorRun(t, s.Operator, s.cluster, s.program, s.namespace, s.cluster.Proxy(t))
	r.start(t)
	r.apply(t, "good", firstState)
	r.waitUntilReady(t, "good", firstState)
	r.waitForReports(t, 1)
	for _, bad := range s.Bad {
		patch := kube.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "change"}}})
		if _, err := r.api().Patch(t.Context(), bad.Name, patch); err != nil {
			t.Fatal(err)
		}
	}
	r.waitForReports(t, 2)
	r.apply(t, "good", secondState)
	r.waitUntilReady(t, "good", secondState)
	for _, bad := range s.Bad {
		n := r.reportCount(bad.Name)
		if bad.Reported == OncePerChange && n != 2 {
			t.Errorf("%s was there and then changed once, and was reported %d times", bad.Name, n)
		}
		if bad.Reported == Never && n > 0 {
			t.Errorf("%s was reported %d times", bad.Name, n)
		}
	}
	for _, bad := range s.Bad {
		s.cluster.Kubectl(t, s.withSpec(bad.Name, bad.Good), "replace", "--namespace", s.namespace, "-f", "-")
	}
	for _, bad := range s.Bad {
		r.waitUntilReady(t, bad.Name, secondState)
		r.delete(t, bad.Name)
		r.waitUntilGone(t, bad.Name)
	}
	r.stop(t)
}
