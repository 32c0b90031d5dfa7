package secure_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/livepage"
	"github.com/yare-go/yare/operator/secure"
	"github.com/yare-go/yare/operator/webhook"
)

type lampSpec struct{}

func (lampSpec) Definition() kube.Definition {
	return kube.Definition{Group: "secure.example.com", Version: "v1", Kind: "Lamp"}
}

type lamp = kube.CustomResource[lampSpec, kube.None]

// programVariable names the program that this test binary is.
const programVariable = "YARE_TEST_PROGRAM"

// run runs parts as the program lamps, and does not return.
func run(parts ...operator.Part) {
	operator.Program{Name: "lamps", Parts: func() ([]operator.Part, error) { return parts, nil }}.Main()
}

func TestMain(m *testing.M) {
	wait := operator.Task("wait", func(ctx context.Context, _ *controller.Runtime) error { <-ctx.Done(); return nil })
	validate := webhook.Validate(func(context.Context, *lamp, *lamp, *kube.Client) error { return nil })
	switch os.Getenv(programVariable) {
	case "with":
		run(wait, livepage.New(), secure.New())
	case "without":
		run(wait)
	case "webhooks":
		run(operator.Watcher[lamp](func(context.Context, *kube.Client) error { return nil }), validate, secure.New())
	}
	os.Exit(m.Run())
}

// call runs a program with args, and returns its status and output.
func call(t *testing.T, program, args string) (status int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), self, strings.Fields(args)...)
	cmd.Env = append(os.Environ(), programVariable+"="+program)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// deploymentOf returns the Deployment of a stream.
func deploymentOf(t *testing.T, stream string) *appsv1.Deployment {
	t.Helper()
	for text := range strings.SplitSeq(stream, "---\n") {
		d := new(appsv1.Deployment)
		if err := yaml.Unmarshal([]byte(text), d); err == nil && d.Kind == "Deployment" {
			return d
		}
	}
	t.Fatalf("there is no Deployment: %s", stream)
	return nil
}

// Flags that contradict each other are errors before any request, and a program without the part names the import.
func TestSecureFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program, args string
		status        int
		want          string
	}{
		{"with", "--listen :1 --listen-secure :2", 2, "one of --listen and --listen-secure"},
		{"with", "--listen-secure 8443", 2, "write it as :8080"},
		{"with", "--listen-secure :1 --tls-cert x", 2, "--tls-cert and --tls-key belong together"},
		{"with", "--listen :1 --tls-cert x --tls-key y", 2, "--tls-cert and --tls-key are for --listen-secure"},
		{"with", "--tls-secret x", 2, "-tls-secret"},
		{"with", "manifests --image i:1 --tls-secret No_Name", 2, "the name of the Secret is not valid"},
		{"with", "manifests --image i:1 --tls-secret a --watch-namespace b", 1, "--tls-secret is for --listen-secure"},
		{"with", "manifests --image i:1 --tls-secret a --listen-secure :1 --tls-cert x --tls-key y", 1, "--tls-secret and --tls-cert exclude each other"},
		{"with", "manifests --image i:1 --service-monitor", 1, "--service-monitor with --listen-secure needs --tls-secret"},
		{"with", "manifests --image i:1 --listen-secure 127.0.0.1:8443", 1, "give --listen-secure the number of a port"},
		{"with", "--listen-secure 127.0.0.1:0 --tls-cert /no/cert --tls-key /no/key", 1, "the certificate that --tls-cert and --tls-key give"},
		{"without", "--listen-secure :0", 1, "import github.com/yare-go/yare/operator/secure and add secure.New() to the parts"},
	} {
		kubeconfig := ""
		if !strings.HasPrefix(test.args, "manifests") {
			kubeconfig = " --kubeconfig " + nowhere(t)
		}
		status, _, stderr := call(t, test.program, test.args+kubeconfig)
		if status != test.status || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: status %d, want %d with %q: %s", test.args, status, test.status, test.want, stderr)
		}
	}
	for program, want := range map[string]bool{"with": true, "without": false} {
		_, help, _ := call(t, program, "--help")
		for _, flag := range []string{"--listen-secure ADDRESS", "--tls-cert FILE", "--tls-key FILE", "--tls-secret NAME"} {
			if strings.Contains(help, flag) != want {
				t.Errorf("the help of the program %s the part is:\n%s", program, help)
			}
		}
	}
	status, stdout, stderr := call(t, "with", "permissions --listen-secure :8443")
	for _, text := range []string{"kind: ClusterRole\n", "- tokenreviews\n", "- subjectaccessreviews\n"} {
		if status != 0 || !strings.Contains(stdout, text) {
			t.Errorf("permissions: status %d, without %q: %s\n%s", status, text, stderr, stdout)
		}
	}
}

// nowhere returns the kubeconfig of a server that does not exist.
func nowhere(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/kubeconfig"
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n" +
		"users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A program with the part serves its metrics over TLS in a cluster. For some namespaces only it serves its health alone.
func TestManifestsServeMetricsOverTLS(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args  string
		want  string
		ports int
	}{
		{"", "run --leader-elect --listen-probes=:8081 --listen-secure=:8443", 2},
		{" --watch-namespace a", "run --leader-elect --listen-probes=:8081 --watch-namespace=a", 1},
		{" --listen :8081", "run --leader-elect --listen-probes=:8082 --listen=:8081", 2},
	} {
		status, stdout, stderr := call(t, "with", "manifests --image i:1"+test.args)
		if status != 0 {
			t.Errorf("%s: status %d, %s", test.args, status, stderr)
			continue
		}
		container := deploymentOf(t, stdout).Spec.Template.Spec.Containers[0]
		if strings.Join(container.Args, " ") != test.want || len(container.Ports) != test.ports || strings.Contains(stdout, "kind: Service\n") != (test.ports == 2) {
			t.Errorf("%s: the arguments are %q, the ports %v", test.args, container.Args, container.Ports)
		}
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			if probe.HTTPGet.Port.String() != "probes" || probe.HTTPGet.Scheme != corev1.URISchemeHTTP {
				t.Errorf("%s: a probe is %v", test.args, probe.HTTPGet)
			}
		}
		if strings.Contains(stdout, "- tokenreviews") != strings.Contains(test.want, "secure") {
			t.Errorf("%s: the permission for reviews does not fit", test.args)
		}
	}
}

// Prometheus verifies the program before it shows its token, the Secret with the certificate is mounted, and only some
// namespaces may read the metrics.
func TestManifestsOfSecureMetrics(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := call(t, "with", "manifests --image i:1 --listen-secure :8443 --tls-secret lamps-tls --service-monitor "+
		"--network-policy-from kubernetes.io/metadata.name=monitoring")
	if status != 0 {
		t.Fatal(stderr)
	}
	pod := deploymentOf(t, stdout).Spec.Template.Spec
	container := pod.Containers[0]
	if !slices.Contains(container.Args, "--tls-cert=/etc/yare/tls/tls.crt") || !slices.Contains(container.Args, "--tls-key=/etc/yare/tls/tls.key") {
		t.Errorf("the arguments are %q", container.Args)
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].Secret.SecretName != "lamps-tls" || container.VolumeMounts[0].MountPath != "/etc/yare/tls" {
		t.Errorf("the volumes are %v, mounted at %v", pod.Volumes, container.VolumeMounts)
	}
	for _, text := range []string{
		"- tokenreviews", "- subjectaccessreviews", "scheme: https", "serverName: lamps.lamps-system.svc", "key: ca.crt", "kubernetes.io/metadata.name: monitoring",
		"name: lamps-metrics-reader.lamps-system\n", "name: lamps-metrics-reader\n",
	} {
		if !strings.Contains(stdout, text) {
			t.Errorf("the stream has no %q: %s", text, stdout)
		}
	}
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "ServiceAccount", "Secret"} {
		isThere := false
		for text := range strings.SplitSeq(stdout, "---\n") {
			isThere = isThere || strings.Contains(text, "kind: "+kind+"\n") && strings.Contains(text, "name: lamps-metrics-reader")
		}
		if !isThere {
			t.Errorf("there is no %s for the reader of the metrics", kind)
		}
	}
	if strings.Contains(stdout, "insecureSkipVerify") || strings.Contains(stdout, "bearerTokenFile") {
		t.Error("the ServiceMonitor does not verify, or names a file")
	}
	// The Secrets of the pages and of the webhooks are mounted beside each other.
	_, stdout, stderr = call(t, "webhooks", "manifests --image i:1 --listen-secure :8443 --tls-secret a --webhook-secret b")
	if !strings.Contains(stderr, "nobody writes the CA of the Secret b") {
		t.Errorf("the note is %s", stderr)
	}
	pod = deploymentOf(t, stdout).Spec.Template.Spec
	if len(pod.Volumes) != 2 || len(pod.Containers[0].VolumeMounts) != 2 || pod.Volumes[1].Secret.SecretName != "b" {
		t.Errorf("the volumes are %v", pod.Volumes)
	}
}
