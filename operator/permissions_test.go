package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// The program prints what its parts declare, for the namespaces that it watches.
func TestPermissionsCommand(t *testing.T) {
	t.Parallel()
	parts := []Part{
		controller.New(reconcileGadget, controller.Owns[appsv1.Deployment](), controller.Reads[corev1.Node](wire.VerbList)),
		Task("report", idleTask,
			controller.Reads[corev1.Secret](wire.VerbGet).Named("token").InOwnNamespace(),
			controller.Allow(kube.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}})),
		Watcher[gadget](idle, controller.Writes[corev1.ConfigMap](wire.VerbCreate).InNamespaces("registry")),
	}
	const everywhere = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: gadgets.gadgets-system
rules:
- apiGroups:
  - ""
  resources:
  - nodes
  verbs:
  - list
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - get
  - list
  - watch
  - create
  - patch
- apiGroups:
  - example.com
  resources:
  - gadgets
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - example.com
  resources:
  - gadgets/finalizers
  verbs:
  - update
- nonResourceURLs:
  - /metrics
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: gadgets
  namespace: gadgets-system
rules:
- apiGroups:
  - ""
  resourceNames:
  - token
  resources:
  - secrets
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: gadgets.gadgets-system
  namespace: registry
rules:
- apiGroups:
  - ""
  resources:
  - configmaps
  verbs:
  - create
`
	status, stdout, stderr := call([]string{"permissions"}, parts...)
	if diff := cmp.Diff(everywhere, stdout); status != 0 || diff != "" {
		t.Errorf("status %d, %s (-want +got):\n%s", status, stderr, diff)
	}
	// What is outside of namespaces stays in a ClusterRole.
	status, stdout, stderr = call(strings.Fields("permissions --watch-namespace one --namespace one -v"), parts...)
	var places []string
	for document := range strings.SplitSeq(stdout, "---\n") {
		place := ""
		for _, word := range []string{"kind: ClusterRole", "namespace: one", "namespace: registry", "nodes", "/metrics", "deployments", "gadgets/finalizers", "secrets", "configmaps"} {
			if strings.Contains(document, word) {
				place += word + " "
			}
		}
		places = append(places, place)
	}
	want := []string{"", "kind: ClusterRole nodes /metrics ", "namespace: one deployments gadgets/finalizers secrets ", "namespace: registry configmaps "}
	if diff := cmp.Diff(want, places); status != 0 || diff != "" {
		t.Errorf("in a namespace: status %d, %s (-want +got):\n%s", status, stderr, diff)
	}
	status, stdout, stderr = call([]string{"permissions"}, Task("nothing", idleTask))
	if status != 0 || stdout != "# gadgets needs no permissions.\n" {
		t.Errorf("without needs: status %d, %s\n%s", status, stderr, stdout)
	}
}

// A mistake in a permission is an error before any request.
func TestPermissionsThatAreWrong(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Part{
		"no verbs":            Task("report", idleTask, controller.Writes[corev1.Node]()),
		"Permission is empty": Watcher[gadget](idle, controller.Permission{}),
	} {
		status, _, stderr := call(nil, p)
		if status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("status %d, want 1 and %q: %s", status, want, stderr)
		}
	}
}
