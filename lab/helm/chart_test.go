package helm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/lab/helm/internal/site"
)

// render returns the objects of a release of the chart in dir, with further values.
func render(t *testing.T, dir string, values map[string]any) ([]map[string]any, error) {
	t.Helper()
	stream, err := renderStream(t, dir, values)
	if err != nil {
		return nil, err
	}
	return site.Parse(t, stream), nil
}

// renderStream returns the text of a release.
func renderStream(t *testing.T, dir string, values map[string]any) (string, error) {
	t.Helper()
	chart, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "shop", Namespace: "shops", Revision: 1, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	return files[chart.Name()+"/templates/manifests.yaml"], nil
}

// A release has what the command manifests prints for its name and its namespace. It differs in the
// Namespace, which Helm makes itself, in the labels of the tool, and in the policy of the definition.
func TestReleaseIsWhatManifestsPrints(t *testing.T) {
	t.Parallel()
	for example, definition := range map[string]string{"webapp": "webapps.example.com", "cronjob": "cronjobs.batch.tutorial.example.com"} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			checkRelease(t, example, definition)
		})
	}
}

// checkRelease compares a release of an example with what the example prints.
func checkRelease(t *testing.T, example, definition string) {
	program, dir := site.Build(t, example), t.TempDir()
	site.Run(t, program, "manifests", "--helm", dir, "--image", site.Image, "--memory-limit=256Mi", "--listen=:8080", "-v")
	released, err := render(t, dir, map[string]any{"networkPolicy": true, "serviceMonitor": true})
	if err != nil {
		t.Fatal(err)
	}
	printed := site.Parse(t, site.Run(t, program, "manifests", "--image", site.Image, "--memory-limit=256Mi", "--listen=:8080", "-v", "--name-prefix=shop", "--namespace=shops", "--network-policy", "--service-monitor"))
	printed = slices.DeleteFunc(printed, func(o map[string]any) bool { return o["kind"] == "Namespace" })
	for _, o := range printed {
		metadata := o["metadata"].(map[string]any)
		labels := metadata["labels"].(map[string]any)
		labels["app.kubernetes.io/managed-by"] = "Helm"
		delete(labels, "manifests.yare.dev/object")
		if o["kind"] == "CustomResourceDefinition" || strings.HasPrefix(metadata["name"].(string), definition+"-") {
			metadata["annotations"] = map[string]any{"helm.sh/resource-policy": "keep"}
		}
		if o["kind"] == "Deployment" {
			pod := o["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			delete(pod["containers"].([]any)[0].(map[string]any), "volumeMounts") // an empty list
		}
	}
	if diff := cmp.Diff(printed, released); diff != "" {
		t.Errorf("printed (-) and released (+) differ:\n%s", diff)
	}
}

// The values change the release.
func TestValues(t *testing.T) {
	t.Parallel()
	program, dir := site.Build(t, "webapp"), t.TempDir()
	site.Run(t, program, "manifests", "--helm", dir, "--env=REGION=north")
	if _, err := render(t, dir, nil); err == nil || !strings.Contains(err.Error(), "the value image is missing") {
		t.Errorf("without an image: %v", err)
	}
	objects, err := render(t, dir, map[string]any{
		"image": site.Image, "replicas": 1, "args": []any{"--watch-namespace={{ a }}"}, "crds": false,
		"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}}, "imagePullSecrets": []any{map[string]any{"name": "key"}},
		"serviceAccountAnnotations": map[string]any{"example.com/role": "operator"}, "priorityClassName": "high",
		"env":          []any{map[string]any{"name": "TZ", "value": "Europe/Berlin"}},
		"envFrom":      []any{map[string]any{"secretRef": map[string]any{"name": "database"}}},
		"volumes":      []any{map[string]any{"name": "cache", "emptyDir": map[string]any{}}},
		"volumeMounts": []any{map[string]any{"name": "cache", "mountPath": "/cache"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o["kind"].(string))
	}
	for _, kind := range []string{"CustomResourceDefinition", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "Namespace"} {
		if slices.Contains(kinds, kind) {
			t.Errorf("there is a %s", kind)
		}
	}
	spec := objects[len(objects)-1]["spec"].(map[string]any)
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	container := pod["containers"].([]any)[0].(map[string]any)
	args := container["args"].([]any)
	if spec["replicas"] != 1.0 || args[len(args)-1] != "--watch-namespace={{ a }}" || container["resources"].(map[string]any)["requests"] == nil ||
		pod["imagePullSecrets"].([]any)[0].(map[string]any)["name"] != "key" {
		t.Errorf("the Deployment is %v", spec)
	}
	env := container["env"].([]any)
	if len(env) != 4 || env[3].(map[string]any)["name"] != "TZ" || env[0].(map[string]any)["name"] != "POD_NAME" ||
		len(container["envFrom"].([]any)) != 1 || container["volumeMounts"].([]any)[0].(map[string]any)["mountPath"] != "/cache" ||
		pod["volumes"].([]any)[0].(map[string]any)["name"] != "cache" || pod["priorityClassName"] != "high" {
		t.Errorf("what the values add is missing in %v", pod)
	}
	account := objects[slices.Index(kinds, "ServiceAccount")]["metadata"].(map[string]any)
	if annotations, _ := account["annotations"].(map[string]any); annotations["example.com/role"] != "operator" {
		t.Errorf("the ServiceAccount is %v", account)
	}
}

// A values.yaml of an earlier version lacks values. The template does not need them.
func TestValuesThatAreMissing(t *testing.T) {
	t.Parallel()
	program, dir := site.Build(t, "webapp"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "values.yaml"), []byte("image: "+site.Image+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	site.Run(t, program, "manifests", "--helm", dir)
	objects, err := render(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last := objects[len(objects)-1]; last["kind"] != "Deployment" {
		t.Errorf("the last object is %v", last)
	}
}

// Labels and annotations of Pods, a user, and the network of the nodes are values.
func TestPodValues(t *testing.T) {
	t.Parallel()
	program, dir := site.Build(t, "cronjob"), t.TempDir()
	site.Run(t, program, "manifests", "--helm", dir, "--image", site.Image, "--toleration=spot")
	objects, err := render(t, dir, map[string]any{
		"podLabels": map[string]any{"team": "platform", "app.kubernetes.io/name": "other"}, "podAnnotations": map[string]any{"example.com/a": "b"},
		"runAsUser": 1000, "hostNetwork": true, "webhookPort": 10250,
	})
	if err != nil {
		t.Fatal(err)
	}
	content, err := yaml.Marshal(objects[len(objects)-1])
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(content, &d); err != nil {
		t.Fatal(err)
	}
	pod, labels := d.Spec.Template.Spec, d.Spec.Template.Labels
	if labels["team"] != "platform" || labels["app.kubernetes.io/name"] != "cronjob" || labels["app.kubernetes.io/instance"] != "shop" ||
		d.Spec.Template.Annotations["example.com/a"] != "b" || *pod.SecurityContext.RunAsUser != 1000 || len(pod.Tolerations) != 1 {
		t.Errorf("the Pods are %+v", d.Spec.Template)
	}
	update := d.Spec.Strategy.RollingUpdate
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet || update.MaxSurge.IntValue() != 0 || update.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the network is not that of the nodes: %+v", d.Spec)
	}
	for _, port := range pod.Containers[0].Ports {
		if port.HostPort != port.ContainerPort || port.Name == "webhooks" && port.ContainerPort != 10250 {
			t.Errorf("the port is %+v", port)
		}
	}
	if !slices.Contains(pod.Containers[0].Args, "--webhooks=:10250") {
		t.Errorf("the arguments are %q", pod.Containers[0].Args)
	}
	site.Run(t, program, "manifests", "--helm", dir, "--image", site.Image, "--listen=:8080")
	if _, err := render(t, dir, map[string]any{"hostNetwork": true}); err == nil || !strings.Contains(err.Error(), "--listen-secure") {
		t.Errorf("pages for everybody: %v", err)
	}
}
