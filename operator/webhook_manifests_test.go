package operator_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/webhook"
)

// gadgetWebhooks returns the parts of a program with a validator and a defaulter.
func gadgetWebhooks() []operator.Part {
	return []operator.Part{
		operator.Watcher[operator.Gadget](operator.Idle),
		webhook.Validate(allowGadget),
		webhook.Default(leaveGadget),
	}
}

// fieldAt returns the value at a path of decoded objects and lists. An element of a list is named by its name.
func fieldAt(t *testing.T, value any, path ...string) any {
	t.Helper()
	for _, name := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i := slices.IndexFunc(v, func(e any) bool { return e.(map[string]any)["name"] == name })
			if i < 0 {
				t.Fatalf("%v has no element %s of the path %q", v, name, path)
			}
			value = v[i]
		default:
			t.Fatalf("%v has no field %s of the path %q", value, name, path)
		}
	}
	return value
}

// The API server finds the webhooks behind a named port of a Service that every program with webhooks has. Neither the
// Secret nor the configurations hold what the program writes.
func TestManifestsOfWebhooks(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := operator.Call(strings.Fields("manifests --image i:1 --network-policy-from kubernetes.io/metadata.name=monitoring"), gadgetWebhooks()...)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	objects, order := operator.Documents(t, stdout)
	last := []string{"Service gadgets", "PodDisruptionBudget gadgets", "NetworkPolicy gadgets", "Secret gadgets-webhooks", "ValidatingWebhookConfiguration gadgets.gadgets-system", "MutatingWebhookConfiguration gadgets.gadgets-system", "Deployment gadgets"}
	if got := order[len(order)-len(last):]; !slices.Equal(got, last) {
		t.Errorf("the last objects are %q, not %q", got, last)
	}
	wantPorts := []any{map[string]any{"name": "webhooks", "port": 443.0, "protocol": "TCP", "targetPort": "webhooks"}}
	if diff := cmp.Diff(wantPorts, fieldAt(t, objects["Service gadgets"], "spec", "ports")); diff != "" {
		t.Errorf("the ports of the Service (-want +got):\n%s", diff)
	}
	if fieldAt(t, objects["Service gadgets"], "spec", "publishNotReadyAddresses") != nil {
		t.Error("the Service publishes addresses that are not ready")
	}
	wantIngress := []any{map[string]any{"ports": []any{map[string]any{"port": "webhooks", "protocol": "TCP"}}}}
	if diff := cmp.Diff(wantIngress, fieldAt(t, objects["NetworkPolicy gadgets"], "spec", "ingress")); diff != "" {
		t.Errorf("the NetworkPolicy lets in (-want +got):\n%s", diff)
	}
	for _, name := range []string{"Secret gadgets-webhooks", "ValidatingWebhookConfiguration gadgets.gadgets-system", "MutatingWebhookConfiguration gadgets.gadgets-system"} {
		for _, each := range []string{"data", "stringData", "type", "webhooks"} {
			if _, ok := objects[name][each]; ok {
				t.Errorf("%s has the field %s", name, each)
			}
		}
		if labels, _ := fieldAt(t, objects[name], "metadata", "labels").(map[string]any); labels["app.kubernetes.io/instance"] != "gadgets" || labels["manifests.yare.dev/namespace"] != "gadgets-system" {
			t.Errorf("%s has the labels %v", name, labels)
		}
	}
	d := operator.DeploymentOf(t, stdout, "gadgets")
	pod := d.Spec.Template.Spec
	container := pod.Containers[0]
	if want := []string{"run", "--leader-elect", "--listen-probes=:8081", "--webhooks=:9443"}; !slices.Equal(container.Args, want) {
		t.Errorf("the arguments are %q, not %q", container.Args, want)
	}
	if i := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == "webhooks" }); i < 0 || container.Ports[i].ContainerPort != 9443 {
		t.Errorf("the ports are %v", container.Ports)
	}
	spread := slices.ContainsFunc(pod.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == "kubernetes.io/hostname" && c.WhenUnsatisfiable == corev1.ScheduleAnyway
	})
	if *d.Spec.Replicas != 2 || !spread || *pod.TerminationGracePeriodSeconds < 45 || len(pod.Volumes) > 0 {
		t.Errorf("%d replicas, %d s, %v", *d.Spec.Replicas, *pod.TerminationGracePeriodSeconds, pod)
	}
	// What the Deployment runs is what the program accepts.
	if err := operator.ParseArgs(container.Args); err != nil {
		t.Error(err)
	}
	// The command that prunes deletes the configurations of a former release first.
	if _, prune, _ := strings.Cut(stdout, "\n# kubectl delete "); !strings.Contains(prune, "' validatingwebhookconfiguration,mutatingwebhookconfiguration,") || !strings.Contains(prune, ",secret") {
		t.Errorf("the command that prunes is %.300s", prune)
	}
	status, again, _ := operator.Call(strings.Fields("manifests --image i:1 --network-policy-from kubernetes.io/metadata.name=monitoring"), gadgetWebhooks()...)
	if status != 0 || again != stdout {
		t.Error("the second call prints something else")
	}
}

// A program serves metrics and webhooks by one Service. It has longer to end than its calls.
func TestManifestsOfWebhooksAndMetrics(t *testing.T) {
	t.Parallel()
	reconcile := func(context.Context, *operator.Gadget, *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}
	parts := append(gadgetWebhooks()[1:], controller.New(reconcile, controller.ShutdownGrace(2*time.Minute)))
	status, stdout, stderr := operator.Call(strings.Fields("manifests --image i:1 --listen :9443 --network-policy --name-prefix shop"), parts...)
	if status != 0 {
		t.Fatal(stderr)
	}
	objects, _ := operator.Documents(t, stdout)
	ports := fieldAt(t, objects["Service shop"], "spec", "ports")
	if fieldAt(t, ports, "metrics", "port") != 9443.0 || fieldAt(t, ports, "webhooks", "port") != 443.0 {
		t.Errorf("the ports are %v", ports)
	}
	if ingress := fieldAt(t, objects["NetworkPolicy shop"], "spec", "ingress").([]any); len(ingress) != 2 || ingress[0].(map[string]any)["from"] == nil {
		t.Errorf("the NetworkPolicy lets in %v", ingress)
	}
	pod := operator.DeploymentOf(t, stdout, "shop").Spec.Template.Spec
	if args := pod.Containers[0].Args; !slices.Contains(args, "--webhooks=:9444") || !slices.Contains(args, "--webhook-service=shop") {
		t.Errorf("the arguments are %q", args)
	}
	if *pod.TerminationGracePeriodSeconds < 120+10 {
		t.Errorf("the Pod has %d s to end", *pod.TerminationGracePeriodSeconds)
	}
	if objects["Secret shop-webhooks"] == nil || objects["ValidatingWebhookConfiguration shop.shop-system"] == nil {
		t.Error("the names of the Secret and the configurations do not follow from --name-prefix")
	}
}

// A program with webhooks may write its Secret and its configurations, by their names, and nothing else of these kinds.
func TestPermissionsOfWebhooks(t *testing.T) {
	t.Parallel()
	const secret = `- apiGroups:
  - ""
  resourceNames:
  - gadgets-webhooks
  resources:
  - secrets
  verbs:
  - list
  - watch
  - create
  - patch
`
	const configurations = `- apiGroups:
  - admissionregistration.k8s.io
  resourceNames:
  - gadgets.gadgets-system
  resources:
  - mutatingwebhookconfigurations
  - validatingwebhookconfigurations
  verbs:
  - list
  - watch
  - patch
  - delete
`
	const namespace = `- apiGroups:
  - ""
  resourceNames:
  - gadgets-system
  resources:
  - namespaces
  verbs:
  - list
  - watch
`
	const deployment = `- apiGroups:
  - apps
  resourceNames:
  - gadgets
  resources:
  - deployments
  verbs:
  - get
`
	for args, isIssuing := range map[string]bool{
		"permissions": true,
		"permissions --watch-namespace a --webhooks :9443":           true,
		"manifests --image i:1":                                      true,
		"manifests --image i:1 --webhook-entries":                    true,
		`permissions --webhooks=`:                                    false,
		`manifests --image i:1 --webhooks=`:                          false,
		"permissions --webhooks :1 --webhook-cert a --webhook-key b": false,
		"manifests --image i:1 --webhook-secret tls":                 false,
	} {
		status, stdout, stderr := operator.Call(strings.Fields(args), gadgetWebhooks()...)
		if status != 0 {
			t.Fatalf("%s: status %d, %s", args, status, stderr)
		}
		for _, rule := range []string{secret, configurations, namespace, deployment} {
			if strings.Contains(stdout, rule) != isIssuing {
				t.Errorf("%s: that there is this rule is not %t:\n%s\n%s", args, isIssuing, rule, stdout)
			}
		}
		if !isIssuing && (strings.Contains(stdout, "- secrets") || strings.Contains(stdout, "- namespaces") || strings.Contains(stdout, "configurations\n") || strings.Contains(stdout, "- deployments")) {
			t.Errorf("%s: there are permissions for what the program does not write:\n%s", args, stdout)
		}
	}
	_, stdout, _ := operator.Call(strings.Fields("permissions --webhook-service shop --namespace shops"), gadgetWebhooks()...)
	operator.CheckText(t, "the permissions", stdout, []string{"  - shop-webhooks\n", "  - shop.shops\n", "  - shops\n", "namespace: shops\n"})
}

// With --webhooks "" a program serves no webhooks, so its manifests have nothing for them.
func TestManifestsWithoutWebhooks(t *testing.T) {
	t.Parallel()
	_, without, _ := operator.Call(strings.Fields("manifests --image i:1"), operator.Watcher[operator.Gadget](operator.Idle))
	status, stdout, stderr := operator.Call(strings.Fields("manifests --image i:1 --webhooks="), gadgetWebhooks()...)
	if status != 0 {
		t.Fatal(stderr)
	}
	stdout = strings.Replace(stdout, "        - --webhooks=\n", "", 1)
	strip := func(stream string) (lines []string) {
		for line := range strings.Lines(stream) {
			if !strings.Contains(line, "revision") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if diff := cmp.Diff(strip(without), strip(stdout)); diff != "" {
		t.Errorf("without webhooks (-) and with those that are not served (+):\n%s", diff)
	}
}

// The flags print entries in full, without a bundle, and with annotations for who writes the bundle.
func TestEntriesOfManifests(t *testing.T) {
	t.Parallel()
	for args, isMounted := range map[string]bool{
		"--webhook-entries": false, "--webhook-secret gadgets-tls": true, "--webhooks :9000 --webhook-cert /c --webhook-key /k": false,
	} {
		args += " --watch-namespace a --webhook-annotation cert-manager.io/inject-ca-from=gadgets-system/gadgets --webhook-annotation a=b=c"
		status, stdout, stderr := operator.Call(strings.Fields("manifests --image i:1 "+args), gadgetWebhooks()...)
		if status != 0 || stderr != "" {
			t.Fatalf("%s: status %d, %s", args, status, stderr)
		}
		objects, _ := operator.Documents(t, stdout)
		for kind, name := range map[string]string{"Validating": "validate.gadgets.example.com", "Mutating": "default.gadgets.example.com"} {
			c := objects[kind+"WebhookConfiguration gadgets.gadgets-system"]
			want := map[string]any{"service": map[string]any{"namespace": "gadgets-system", "name": "gadgets", "path": "/" + name + "/v1", "port": 443.0}}
			if diff := cmp.Diff(want, fieldAt(t, c, "webhooks", name, "clientConfig")); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", args, name, diff)
			}
			if fieldAt(t, c, "webhooks", name, "failurePolicy") != "Fail" || fieldAt(t, c, "webhooks", name, "namespaceSelector") == nil || fieldAt(t, c, "webhooks", name, "matchConditions") == nil {
				t.Errorf("%s: the entry is %v", args, c)
			}
			if diff := cmp.Diff(map[string]any{"cert-manager.io/inject-ca-from": "gadgets-system/gadgets", "a": "b=c"}, fieldAt(t, c, "metadata", "annotations")); diff != "" {
				t.Errorf("%s: the annotations (-want +got):\n%s", args, diff)
			}
		}
		if hasSecret := objects["Secret gadgets-webhooks"] != nil; hasSecret != strings.HasPrefix(args, "--webhook-entries") {
			t.Errorf("%s: that there is a Secret is %t", args, hasSecret)
		}
		pod := operator.DeploymentOf(t, stdout, "gadgets").Spec.Template.Spec
		container := pod.Containers[0]
		if (len(pod.Volumes) == 1 && pod.Volumes[0].Secret.SecretName == "gadgets-tls" && container.VolumeMounts[0].MountPath == "/etc/yare/webhooks") != isMounted ||
			slices.Contains(container.Args, "--webhook-cert=/etc/yare/webhooks/tls.crt") != isMounted || slices.Contains(container.Args, "--webhook-key=/etc/yare/webhooks/tls.key") != isMounted {
			t.Errorf("%s: the volumes are %v, the arguments %q", args, pod.Volumes, container.Args)
		}
	}
	_, _, stderr := operator.Call(strings.Fields("manifests --image i:1 --webhook-secret b"), gadgetWebhooks()...)
	operator.CheckText(t, "the note", stderr, []string{"nobody writes the CA of the Secret b", "--webhook-annotation"})
}

func TestWebhookFlagsThatAreWrong(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct {
		status int
		want   []string
	}{
		"--webhooks 9443":                 {2, []string{"-webhooks", "write it as :8080"}},
		"--webhooks 127.0.0.1:9443":       {1, []string{"--webhooks", "127.0.0.1:9443"}},
		"--webhooks :8081":                {1, []string{"the port 8081", "another port"}}, // the health has it
		"--webhooks :8080 --listen :8080": {1, []string{"the port 8080"}},
		"--listen :443":                   {1, []string{"the port 443", "--listen"}},
		"--webhook-service other":         {1, []string{`"other"`, "--name-prefix"}},
		"--webhook-service gadgets":       {0, nil},
		"--webhook-annotation a":          {2, []string{"cert-manager.io/inject-ca-from"}},
		"--webhooks= --webhook-entries":   {1, []string{"serves no webhooks"}},
		"--webhooks= --webhook-secret a":  {1, []string{"serves no webhooks"}},
		"--webhook-cert c":                {2, []string{"--webhook-key"}},
		"--webhook-secret No_Name":        {2, []string{"the name of the Secret"}},
		"--webhook-port 0":                {2, []string{"no port", "9443"}},
		"--webhook-port 8081":             {1, []string{"the port 8081", "another port"}}, // the health has it
		"--webhook-port 1 --webhooks :2":  {1, []string{"exclude each other"}},
		"--webhook-port 10250":            {0, nil},
		"--webhooks :9443 --webhook-cert c --webhook-key k --webhook-secret s": {1, []string{"exclude each other"}},
	} {
		status, stdout, stderr := operator.Call(append([]string{"manifests", "--image=i:1"}, strings.Fields(args)...), gadgetWebhooks()...)
		if status != c.status || (stdout == "") != (status != 0) {
			t.Errorf("%s: status %d, %s", args, status, stderr)
		}
		operator.CheckText(t, args, stderr, c.want)
	}
	for _, args := range []string{"manifests --image=i:1 --webhook-entries", "manifests --image=i:1 --webhook-secret=a", "manifests --image=i:1 --webhook-annotation=a=b", "revoke-webhook-authority"} {
		if status, _, stderr := operator.Call(strings.Fields(args), operator.Watcher[operator.Gadget](operator.Idle)); status != 1 || !strings.Contains(stderr, "import github.com/yare-go/yare/operator/webhook and add webhook.Validate to the parts") {
			t.Errorf("%s without webhooks: status %d, %s", args, status, stderr)
		}
	}
}

// The help names the flags and the command of webhooks only for a program that has webhooks.
func TestHelpAboutWebhooks(t *testing.T) {
	t.Parallel()
	_, with, _ := operator.Call([]string{"--help"}, gadgetWebhooks()...)
	operator.CheckText(t, "the help", with, []string{"gadgets revoke-webhook-authority", "--webhooks ADDRESS", "--webhook-service NAME", "--webhook-cert FILE", "--webhook-entries", "--webhook-annotation KEY=VALUE", "--webhook-secret NAME", "--webhook-port N"})
	if _, without, _ := operator.Call([]string{"--help"}, operator.Watcher[operator.Gadget](operator.Idle)); strings.Contains(without, "webhook") {
		t.Errorf("without webhooks the help is\n%s", without)
	}
}

// In a chart, the names follow from the release, also in the arguments.
func TestChartOfWebhooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if status, _, stderr := operator.Call([]string{"manifests", "--helm", dir, "--webhook-entries"}, gadgetWebhooks()...); status != 0 {
		t.Fatal(stderr)
	}
	text := operator.Read(t, filepath.Join(dir, "templates", "manifests.yaml"))
	operator.CheckText(t, "the chart", text, []string{
		`(print "--webhooks=:" (int (.Values.webhookPort | default 9443))) (print "--webhook-service=" .Release.Name "")`, "name: '{{ .Release.Name }}-webhooks'", "- '{{ .Release.Name }}-webhooks'",
		"kind: ValidatingWebhookConfiguration", "name: '{{ .Release.Name }}.{{ .Release.Namespace }}'", "      name: {{ toJson .Release.Name }}\n      namespace: {{ toJson .Release.Namespace }}\n      path: /validate",
	})
	if keep := os.Getenv("YARE_TEST_CHART"); keep != "" {
		if err := os.CopyFS(keep, os.DirFS(dir)); err != nil {
			t.Error(err)
		}
	}
}

// A program with webhooks knows the name and the namespace that its manifests were printed for.
func TestManifestsNameTheirInstallation(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := operator.Call([]string{"manifests", "--image", "i:1", "--namespace", "shop"}, gadgetWebhooks()...)
	if status != 0 || !strings.Contains(stdout, "- name: "+manifests.InstallationVariable+"\n          value: gadgets.shop\n") {
		t.Errorf("status %d, %s\n%s", status, stderr, stdout)
	}
}
