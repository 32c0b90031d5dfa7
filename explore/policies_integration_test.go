package explore

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/executable"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// policyProgram prints no definition, and a policy that refuses the ConfigMap refused.explore.yare.dev.
const policyProgram = `#!/bin/sh
test "$1" = manifests && cat <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refused.explore.yare.dev}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE], resourceNames: [refused.explore.yare.dev]}]
  validations: [{expression: "object.metadata.namespace == ''", message: refused by the policy}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refused.explore.yare.dev}
spec: {policyName: refused.explore.yare.dev, validationActions: [Deny]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: default}
END
exit 0
`

// An operator is explored under the policies that it prints, as yare dev runs it.
func TestPoliciesOfAProgram(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	path := filepath.Join(t.TempDir(), "program")
	executable.Write(t, path, policyProgram)
	opened, err := Binary{Path: path}.open(t.Context(), t.TempDir())
	if err != nil || len(opened.policies) != 2 {
		t.Fatalf("the program has %d policies, %v", len(opened.policies), err)
	}
	e := &exploration{operator: opened.launcher, installed: opened.installed, policies: opened.policies}
	e.settings.Config = cluster.Config()
	if err := e.install(t.Context(), func(text string) { t.Error(text) }); err != nil {
		t.Fatal(err)
	}
	create := func() error {
		_, err := kube.Namespaced[corev1.ConfigMap](cluster.Client(t), cluster.Namespace(t)).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused.explore.yare.dev"}})
		return err
	}
	if err := create(); !kube.IsInvalid(err) {
		t.Errorf("under the policy, a create is answered with %v", err)
	}
	if err := e.removePolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, create)
}
