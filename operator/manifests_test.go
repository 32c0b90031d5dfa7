package operator

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// gadgetProgram returns a program with a flag of its own, which is called --image like one of the
// command manifests.
func gadgetProgram(image, bucket *string) Program {
	return Program{
		Flags: func(flags *flag.FlagSet) {
			flags.StringVar(image, "image", "", "what the gadgets run")
			flags.StringVar(bucket, "bucket", "", "where the gadgets are kept")
		},
		Parts: func() ([]Part, error) {
			if *bucket == "" {
				return nil, errors.New("--bucket is missing")
			}
			return idleParts()
		},
	}
}

// documents returns the objects of a stream by their kinds and names.
func documents(t *testing.T, stream string) (objects map[string]map[string]any, order []string) {
	t.Helper()
	objects = make(map[string]map[string]any)
	for _, text := range strings.Split(stream, "---\n")[1:] {
		object := make(map[string]any)
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		key := object["kind"].(string) + " " + object["metadata"].(map[string]any)["name"].(string)
		if objects[key] != nil {
			t.Errorf("%s is printed twice", key)
		}
		objects[key] = object
		order = append(order, key)
	}
	return objects, order
}

// deploymentOf returns the Deployment of a stream.
func deploymentOf(t *testing.T, stream, name string) *appsv1.Deployment {
	t.Helper()
	objects, _ := documents(t, stream)
	content, err := kube.Marshal(objects["Deployment "+name])
	d := new(appsv1.Deployment)
	if err == nil {
		err = kube.Unmarshal(content, d)
	}
	if err != nil || d.Name == "" {
		t.Fatalf("there is no Deployment %s: %v\n%s", name, err, stream)
	}
	return d
}

func TestManifestsInTheirOrder(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := call(strings.Fields("manifests --image i:1 --listen :8080 --network-policy --service-monitor"), Watcher[gadget](idle))
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	_, order := documents(t, stdout)
	order = slices.DeleteFunc(order, func(key string) bool { return strings.HasPrefix(key, "Role") }) // for the Lease
	want := []string{
		"CustomResourceDefinition gadgets.example.com", "ClusterRole gadgets.example.com-view", "ClusterRole gadgets.example.com-edit", "ClusterRole gadgets.example.com-admin",
		"Namespace gadgets-system", "ServiceAccount gadgets", "ClusterRole gadgets.gadgets-system", "ClusterRoleBinding gadgets.gadgets-system",
		"Service gadgets", "PodDisruptionBudget gadgets", "NetworkPolicy gadgets", "ServiceMonitor gadgets", "Deployment gadgets",
	}
	if !slices.Equal(order, want) {
		t.Errorf("the objects are\n%q, not\n%q", order, want)
	}
	_, again, _ := call(strings.Fields("manifests --image i:1 --listen :8080 --network-policy --service-monitor"), Watcher[gadget](idle))
	if stdout != again {
		t.Error("the second call prints something else")
	}
	_, stdout, _ = call(strings.Fields("manifests --image i:1 --replicas 1"), Watcher[gadget](idle))
	for _, kind := range []string{"PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor"} {
		if strings.Contains(stdout, "kind: "+kind) {
			t.Errorf("one replica has a %s that nobody asked for", kind)
		}
	}
}

// The Deployment gets the flags of the program, in their order. A flag of the program whose name
// the command has too stands after --.
func TestManifestsPassFlagsOn(t *testing.T) {
	t.Parallel()
	var image, bucket string
	args := []string{"manifests", "--image=i:1", "--bucket", "b c", "-v", "--lease-duration", "30s", "--kubeconfig", "/nowhere", "--", "--image", "inner:2", "--listen=:9090"}
	status, stdout, stderr := callProgram(args, gadgetProgram(&image, &bucket))
	if status != 0 || image != "inner:2" || bucket != "b c" {
		t.Fatalf("status %d, image %q, bucket %q, %s", status, image, bucket, stderr)
	}
	container := deploymentOf(t, stdout, "gadgets").Spec.Template.Spec.Containers[0]
	own := slices.DeleteFunc(slices.Clone(container.Args), func(arg string) bool { return arg == "--leader-elect" })
	if want := []string{"run", "--listen-probes=:8081", "--bucket=b c", "--v=true", "--lease-duration=30s", "--image=inner:2", "--listen=:9090"}; !slices.Equal(own, want) {
		t.Errorf("the arguments are %q, not %q", own, want)
	}
	if container.Image != "i:1" || container.Ports[0].ContainerPort != 8081 || container.Ports[1].ContainerPort != 9090 {
		t.Errorf("the container is %+v", container)
	}
	// What the Deployment runs is what the program accepts.
	if line, err := newCommandLine("gadgets", gadgetProgram(&image, &bucket).Flags); err != nil {
		t.Error(err)
	} else if err := line.parse(container.Args); err != nil {
		t.Error(err)
	}
}

// Metrics are closed by default: a program serves its health alone. Package secure has the test of a program with its part.
func TestManifestsServeNoOpenMetrics(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args  string
		parts []Part
		want  []string
		ports int
	}{
		"without the part": {parts: []Part{Watcher[gadget](idle)}, want: []string{"run", "--leader-elect", "--listen-probes=:8081"}, ports: 1},
		"with --listen":    {args: " --listen :8081", parts: []Part{Watcher[gadget](idle)}, want: []string{"run", "--leader-elect", "--listen-probes=:8082", "--listen=:8081"}, ports: 2},
	} {
		status, stdout, stderr := call(strings.Fields("manifests --image i:1"+test.args), test.parts...)
		if status != 0 {
			t.Errorf("%s: status %d, %s", name, status, stderr)
			continue
		}
		container := deploymentOf(t, stdout, "gadgets").Spec.Template.Spec.Containers[0]
		if !slices.Equal(container.Args, test.want) || len(container.Ports) != test.ports || strings.Contains(stdout, "kind: Service\n") != (test.ports == 2) {
			t.Errorf("%s: the arguments are %q, the ports %v", name, container.Args, container.Ports)
		}
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			if probe.HTTPGet.Port.String() != "probes" || probe.HTTPGet.Scheme != corev1.URISchemeHTTP {
				t.Errorf("%s: a probe is %v", name, probe.HTTPGet)
			}
		}
		if strings.Contains(stdout, "- tokenreviews") {
			t.Errorf("%s: there is a permission for reviews", name)
		}
	}
}

func TestManifestsThatAreWrong(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct {
		status int
		want   []string
	}{
		"":                                        {1, []string{"--image is missing"}},
		"--image i:1 --replicas 0":                {1, []string{"--replicas is 0"}},
		"--image i:1 --memory-limit 12parsec":     {1, []string{"--memory-limit", "128Mi"}},
		"--image i:1 --listen 127.0.0.1:8080":     {1, []string{"--listen", "such as :8080"}},
		"--image i:1 --service-monitor":           {1, []string{"give --listen"}},
		"--image i:1 --tls-secret a":              {1, []string{"--tls-secret", "add secure.New() to the parts"}},
		"--image i:1 --network-policy-from a":     {2, []string{"kubernetes.io/metadata.name=monitoring"}},
		"--image i:1 --namespace No_Name":         {2, []string{"-namespace"}},
		"--image i:1 --name-prefix 1st":           {1, []string{`"1st"`, "--name-prefix"}},
		"--image i:1 --kustomize a --helm b":      {1, []string{"exclude each other"}},
		"--image i:1 surplus":                     {2, []string{`manifests takes no argument "surplus"`}},
		"--image i:1 -- --frobnicate":             {2, []string{"-frobnicate"}},
		"--frobnicate":                            {2, []string{"-frobnicate"}},
		"--replicas 0 --memory-limit 0 --image=":  {1, []string{"--image is missing", "--replicas is 0", "--memory-limit"}},
		"--image i:1 --check --kubeconfig /no/ne": {1, []string{"/no/ne"}},
	} {
		status, stdout, stderr := call(append([]string{"manifests"}, strings.Fields(args)...), Watcher[gadget](idle))
		if status != c.status || stdout != "" {
			t.Errorf("%s: status %d, %s", args, status, stdout)
		}
		checkText(t, args, stderr, c.want)
	}
	status, _, stderr := callProgram(strings.Fields("manifests --image i:1"), Program{Parts: idleParts, Manifests: func(*Manifests) error { return errors.New("no Sundays") }})
	if status != 1 || stderr != "gadgets: no Sundays\n" {
		t.Errorf("an error of the author: status %d, %s", status, stderr)
	}
}

// A request for memory is never above the limit, which a server would refuse.
func TestMemoryOfManifests(t *testing.T) {
	t.Parallel()
	for limit, wantRequest := range map[string]string{"": "64Mi", "32Mi": "32Mi", "64M": "64M", "1Gi": "64Mi", "70000000": "64Mi"} {
		_, stdout, stderr := call([]string{"manifests", "--image=i:1", "--memory-limit=" + limit}, Watcher[gadget](idle))
		if stderr != "" {
			t.Fatal(stderr)
		}
		r := deploymentOf(t, stdout, "gadgets").Spec.Template.Spec.Containers[0].Resources
		request, actual := r.Requests[corev1.ResourceMemory], r.Limits[corev1.ResourceMemory]
		if request.String() != wantRequest || limit != "" && actual.Cmp(request) < 0 || limit == "" && len(r.Limits) > 0 {
			t.Errorf("with the limit %q: %+v", limit, r)
		}
		if _, ok := r.Limits[corev1.ResourceCPU]; ok {
			t.Error("there is a limit for processor time")
		}
	}
}

// The Pod has longer to end than the slowest controller.
func TestGraceOfManifests(t *testing.T) {
	t.Parallel()
	reconcile := func(context.Context, *gadget, *kube.Client) (controller.Action, error) { return controller.Done(), nil }
	for grace, want := range map[string]int64{"15s": 30, "2m": 135} {
		d, err := time.ParseDuration(grace)
		if err != nil {
			t.Fatal(err)
		}
		_, stdout, stderr := call([]string{"manifests", "--image=i:1"}, controller.New(reconcile, controller.ShutdownGrace(d)))
		if stderr != "" {
			t.Fatal(stderr)
		}
		if got := deploymentOf(t, stdout, "gadgets").Spec.Template.Spec.TerminationGracePeriodSeconds; *got != want {
			t.Errorf("with %s of grace the Pod has %d s, not %d", grace, *got, want)
		}
	}
}

// An author changes what is printed by the types of k8s.io/api. What the author adds has the labels
// of the installation and comes before the Deployment.
func TestManifestsOfAnAuthor(t *testing.T) {
	t.Parallel()
	p := Program{Parts: idleParts, Manifests: func(m *Manifests) error {
		err := AddManifest(m, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: "settings", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"k": "v"}})
		return errors.Join(err, EditManifest(m, func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			pod.Containers[0].Env = append(pod.Containers[0].Env, corev1.EnvVar{Name: "TZ", Value: "Europe/Berlin"})
		}))
	}}
	status, stdout, stderr := callProgram(strings.Fields("manifests --image i:1"), p)
	if status != 0 {
		t.Fatal(stderr)
	}
	objects, order := documents(t, stdout)
	if n := len(order); order[n-1] != "Deployment gadgets" || order[n-2] != "ConfigMap settings" {
		t.Errorf("the order is %q", order)
	}
	labels := objects["ConfigMap settings"]["metadata"].(map[string]any)["labels"].(map[string]any)
	if labels["a"] != "b" || labels["app.kubernetes.io/instance"] != "gadgets" || labels["manifests.yare.dev/object"] == nil {
		t.Errorf("the labels are %v", labels)
	}
	if d := deploymentOf(t, stdout, "gadgets"); len(d.Spec.Template.Spec.Containers[0].Env) != 3 || d.Spec.Template.Spec.Volumes[0].EmptyDir == nil {
		t.Errorf("the Deployment is %+v", d.Spec.Template.Spec)
	}
	if strings.Contains(stdout, "creationTimestamp") || strings.Contains(stdout, "status: {}") {
		t.Error("empty values are printed")
	}
	p.Manifests = func(m *Manifests) error { return EditManifest(m, func(*policyv1.PodDisruptionBudget) {}) }
	if status, _, stderr := callProgram(strings.Fields("manifests --image i:1 --replicas 1"), p); status != 1 || !strings.Contains(stderr, "there is no PodDisruptionBudget") {
		t.Errorf("an object that is missing: status %d, %s", status, stderr)
	}
}

// Regression: the command in the stream that deletes what is not printed any more selected the running Deployment and the
// permissions, if kustomize had installed them: they had no hash, and "notin" selects objects without the label.
func TestPruneLeavesOutWhatKustomizeInstalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if status, _, stderr := call([]string{"manifests", "--image", "i:1", "--kustomize", dir}, Watcher[gadget](idle)); status != 0 {
		t.Fatal(stderr)
	}
	_, stream, _ := call([]string{"manifests", "--image", "i:1"}, Watcher[gadget](idle))
	_, prune, _ := strings.Cut(stream, "\n# kubectl delete ")
	prune, _, _ = strings.Cut(prune, "\n")
	if want := "app.kubernetes.io/managed-by=yare,"; !strings.Contains(prune, want) {
		t.Errorf("the command does not leave out what Helm installs: %s", prune)
	}
	hashes := 0
	for line := range strings.Lines(read(t, filepath.Join(dir, "manifests.yaml"))) {
		if hash, isHash := strings.CutPrefix(strings.TrimSpace(line), "manifests.yare.dev/object: "); isHash {
			hashes++
			if !strings.Contains(prune, strings.Trim(hash, `"`)) {
				t.Errorf("the command deletes the object with the hash %s: %s", hash, prune)
			}
		}
	}
	if hashes < 4 { // a Deployment, its ServiceAccount, a role and a binding
		t.Errorf("%d objects of kustomize have a hash", hashes)
	}
}

// Generated files are written anew, and files of the user never are.
func TestFilesOfManifests(t *testing.T) {
	t.Parallel()
	for flag, files := range map[string]struct{ made, owned []string }{
		"--kustomize": {[]string{"manifests.yaml"}, []string{"kustomization.yaml"}},
		"--helm":      {[]string{"templates/manifests.yaml"}, []string{"Chart.yaml", "values.yaml"}},
	} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "new", "folder")
			write := func(image string) (int, string) {
				status, stdout, stderr := call([]string{"manifests", "--image", image, flag, dir}, Watcher[gadget](idle))
				if stdout != "" {
					t.Errorf("standard output is %s", stdout)
				}
				return status, stderr
			}
			if status, stderr := write("i:1"); status != 0 {
				t.Fatal(stderr)
			}
			for _, name := range files.owned {
				change(t, filepath.Join(dir, name), "# mine\n")
			}
			first := read(t, filepath.Join(dir, files.made[0]))
			change(t, filepath.Join(dir, files.made[0]), first+"# an edit\n")
			if status, stderr := write("i:1"); status != 0 {
				t.Fatal(stderr)
			}
			for _, name := range files.owned {
				if text := read(t, filepath.Join(dir, name)); text != "# mine\n" {
					t.Errorf("%s was changed: %s", name, text)
				}
			}
			if again := read(t, filepath.Join(dir, files.made[0])); again != first {
				t.Errorf("%s was not written anew", files.made[0])
			}
			change(t, filepath.Join(dir, files.made[0]), "# mine\n")
			if status, stderr := write("i:1"); status != 1 || !strings.Contains(stderr, files.made[0]) || !strings.Contains(stderr, "move it away") {
				t.Errorf("with a file of the user under that name: status %d, %s", status, stderr)
			}
			if text := read(t, filepath.Join(dir, files.made[0])); text != "# mine\n" {
				t.Errorf("a file of the user was overwritten by\n%s", text)
			}
		})
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func change(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a company's clusters demand of Pods and accounts is a flag.
func TestManifestsForACompany(t *testing.T) {
	t.Parallel()
	args := "manifests --image registry.example.com:5000/gadgets --cpu-limit 500m --priority-class system-cluster-critical --service-account-annotation example.com/role=writer=1"
	status, stdout, stderr := call(strings.Fields(args), Watcher[gadget](idle))
	if status != 0 || !strings.Contains(stderr, "may be another one tomorrow") {
		t.Fatalf("status %d, %s", status, stderr)
	}
	pod := deploymentOf(t, stdout, "gadgets").Spec.Template.Spec
	if limit := pod.Containers[0].Resources.Limits[corev1.ResourceCPU]; limit.String() != "500m" || pod.PriorityClassName != "system-cluster-critical" {
		t.Errorf("the Pod is %+v", pod)
	}
	checkText(t, "the stream", stdout, []string{
		"example.com/role: writer=1", "pod-security.kubernetes.io/enforce-version: latest", "pod-security.kubernetes.io/warn: restricted",
		"pod-security.kubernetes.io/audit: restricted", "# To remove the program run gadgets uninstall",
	})
	for image, isMoving := range map[string]bool{
		"i": true, "r.example.com:5000/i": true, "i:latest": true, "i:v1": false, "r.example.com/i@sha256:abc": false,
	} {
		if isMovingTag(image) != isMoving {
			t.Errorf("%s may change: %t", image, !isMoving)
		}
	}
	for _, wrong := range []string{"--cpu-limit fast", "--service-account-annotation a"} {
		if status, _, stderr := call(strings.Fields("manifests --image i:1 "+wrong), Watcher[gadget](idle)); status == 0 {
			t.Errorf("%s is accepted: %s", wrong, stderr)
		}
	}
}

// Where and as whom the Pods run is a flag. No user is printed without one: OpenShift gives each namespace its own range of
// users, and refuses others.
func TestPlacementOfManifests(t *testing.T) {
	t.Parallel()
	args := []string{
		"manifests", "--image=i:1", "--node-selector=example.com/pool=operators", "--toleration=dedicated=operators:NoSchedule", "--toleration=spot",
		"--affinity={podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}",
		"--pod-label=team=platform", "--pod-annotation=example.com/scrape=yes", "--memory-request=128Mi", "--cpu-request=100m",
	}
	status, stdout, stderr := call(args, Watcher[gadget](idle))
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	d := deploymentOf(t, stdout, "gadgets")
	template, pod := d.Spec.Template, d.Spec.Template.Spec
	context := pod.SecurityContext
	if context.RunAsUser != nil || context.RunAsGroup != nil || context.FSGroup != nil || context.RunAsNonRoot == nil || !*context.RunAsNonRoot {
		t.Errorf("the security context is %+v", context)
	}
	want := []corev1.Toleration{
		{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "operators", Effect: corev1.TaintEffectNoSchedule},
		{Key: "spot", Operator: corev1.TolerationOpExists},
	}
	if diff := cmp.Diff(want, pod.Tolerations); diff != "" {
		t.Errorf("the tolerations differ:\n%s", diff)
	}
	requests := pod.Containers[0].Resources.Requests
	if pod.NodeSelector["example.com/pool"] != "operators" || pod.NodeSelector["kubernetes.io/os"] != "linux" ||
		pod.Affinity.NodeAffinity == nil || len(pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 ||
		template.Labels["team"] != "platform" || template.Annotations["example.com/scrape"] != "yes" ||
		d.Spec.Selector.MatchLabels["team"] != "" || requests.Memory().String() != "128Mi" || requests.Cpu().String() != "100m" {
		t.Errorf("the Deployment is %+v", d.Spec)
	}
	_, stdout, _ = call([]string{"manifests", "--image=i:1", "--run-as-user=65532"}, Watcher[gadget](idle))
	if user := deploymentOf(t, stdout, "gadgets").Spec.Template.Spec.SecurityContext.RunAsUser; user == nil || *user != 65532 {
		t.Errorf("the user is %v", user)
	}
	for flag, want := range map[string]string{
		"--run-as-user=0": "other than root", "--run-as-user=web": "write it as 65532", "--node-selector=a": "write it as",
		"--toleration=a:Never": "NoSchedule", "--affinity=near": "no affinity", "--affinity={pods: {}}": `no field "pods"`,
		"--pod-label=app.kubernetes.io/name=a": "leave it out", "--pod-annotation=a": "example.com/team=platform",
		"--memory-request=much": "--memory-request", "--cpu-request=fast": "--cpu-request",
	} {
		if status, stdout, stderr := call([]string{"manifests", "--image=i:1", flag}, Watcher[gadget](idle)); status == 0 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %s", flag, status, stderr)
		}
	}
}

// The rules of OpenShift's SCC restricted-v2, which all users have: see
// https://docs.openshift.com/container-platform/latest/authentication/managing-security-context-constraints.html. An SCC
// refuses a Pod that names a user outside of the range of its namespace.
func TestManifestsUnderRestrictedV2(t *testing.T) {
	t.Parallel()
	_, stdout, _ := call(strings.Fields("manifests --image i:1 --listen :8080 --volume secret/a=/a --volume configmap/b=/b --volume emptydir=/c --volume persistentvolumeclaim/d=/d"), Watcher[gadget](idle))
	pod := deploymentOf(t, stdout, "gadgets").Spec.Template.Spec
	if pod.HostNetwork || pod.HostPID || pod.HostIPC || pod.SecurityContext.RunAsUser != nil || pod.SecurityContext.FSGroup != nil ||
		pod.SecurityContext.SELinuxOptions != nil || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the Pod is %+v", pod)
	}
	for _, v := range pod.Volumes {
		if v.HostPath != nil || v.Secret == nil && v.ConfigMap == nil && v.EmptyDir == nil && v.PersistentVolumeClaim == nil {
			t.Errorf("the volume is %+v", v)
		}
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		s := c.SecurityContext
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				t.Errorf("the port is %+v", port)
			}
		}
		if s.RunAsUser != nil || s.Privileged != nil && *s.Privileged || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("the container is %+v", c)
		}
	}
}

// In the network of the nodes each port is one of the node, so an update ends a Pod before it starts the next one.
func TestManifestsInTheHostNetwork(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := call(strings.Fields("manifests --image i:1 --host-network --replicas 1"), Watcher[gadget](idle))
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	checkText(t, "the stream", stdout, []string{"pod-security.kubernetes.io/enforce: privileged"})
	d := deploymentOf(t, stdout, "gadgets")
	pod, update := d.Spec.Template.Spec, d.Spec.Strategy.RollingUpdate
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet || update.MaxSurge.IntValue() != 0 || update.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the Deployment is %+v", d.Spec)
	}
	for _, port := range pod.Containers[0].Ports {
		if port.HostPort != port.ContainerPort {
			t.Errorf("the port %+v is not that of the node", port)
		}
	}
	for args, want := range map[string]string{
		"--listen :8080": "--listen-secure", "--listen 127.0.0.1:8080": "--listen-secure", "--network-policy": "exclude each other",
	} {
		if status, stdout, stderr := call(strings.Fields("manifests --image i:1 --host-network "+args), Watcher[gadget](idle)); status == 0 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %s", args, status, stderr)
		}
	}
	_, _, stderr = call(strings.Fields("manifests --image i:1 --host-network --namespace shared"), Watcher[gadget](idle))
	checkText(t, "the notes", stderr, []string{"the namespace shared must allow the Pod Security Standard privileged"})
}

// The texts of a Secret stay texts in manifests: a chart has placeholders in them, which base64 would hide.
func TestStringDataOfManifests(t *testing.T) {
	t.Parallel()
	m := new(Manifests)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "login"}, Data: map[string][]byte{"key": []byte("k")}, StringData: map[string]string{"url": "https://{{namespace}}"},
	}
	if err := AddManifest(m, secret); err != nil {
		t.Fatal(err)
	}
	got := m.Objects[0]
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "ns", "name": "login"},
		"data": map[string]any{"key": "aw=="}, "stringData": map[string]any{"url": "https://{{namespace}}"},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(secret.StringData) != 1 {
		t.Errorf("the Secret (-want +got):\n%s", diff)
	}
}
