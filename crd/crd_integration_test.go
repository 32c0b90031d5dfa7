package crd_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/testkit/serverminor"
	"github.com/yare-go/yare/yaretest"
	corev1 "k8s.io/api/core/v1"
)

// The API server accepts every definition of these tests and finds nothing wrong with it, and
// then accepts and refuses the objects that it should.
func TestServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	cluster := yaretest.Shared(t)
	crds := all(t)
	for i, tc := range append(append(schemaCases(), tagCases()...), schemaCase{name: "pod template", of: held[corev1.PodTemplateSpec]}) {
		c, err := tc.of()
		if err != nil {
			t.Fatal(err)
		}
		crds = append(crds, renamed(c, i))
	}
	define(t, cluster, crds)
	t.Run("conditions", func(t *testing.T) { t.Parallel(); conditions(t, cluster, crds) })
	t.Run("objects", func(t *testing.T) { t.Parallel(); acceptsAndRefuses(t, cluster) })
	t.Run("uses", func(t *testing.T) { t.Parallel(); usesTheDefinition(t, cluster) })
}

// conditions checks the conditions of the definitions. Some of them, such as
// NonStructuralSchema, do not keep a definition from being served.
func conditions(t *testing.T, cluster *yaretest.Cluster, crds []*crd.CustomResourceDefinition) {
	var live struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
	}
	if err := json.Unmarshal([]byte(cluster.Kubectl(t, "", "get", "crd", "-o", "json")), &live); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, item := range live.Items {
		// The control plane belongs to this process, but tests to come may define more.
		if !slices.ContainsFunc(crds, func(c *crd.CustomResourceDefinition) bool { return c.Metadata.Name == item.Metadata.Name }) {
			continue
		}
		found++
		for _, condition := range item.Status.Conditions {
			good := condition.Type == "Established" || condition.Type == "NamesAccepted"
			if good != (condition.Status == "True") {
				t.Errorf("%s: %s is %s: %s", item.Metadata.Name, condition.Type, condition.Status, condition.Message)
			}
		}
	}
	if found != len(crds) {
		t.Errorf("the server has %d of %d definitions", found, len(crds))
	}
}

// renamed returns c with a kind of its own, by its number.
func renamed(c *crd.CustomResourceDefinition, i int) *crd.CustomResourceDefinition {
	kind := fmt.Sprintf("Holder%d", i)
	c.Spec.Names = crd.Names{Plural: strings.ToLower(kind) + "s", Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"}
	c.Metadata.Name = c.Spec.Names.Plural + "." + c.Spec.Group
	return c
}

// define applies definitions as a user would, and waits until they are served. Each must fit
// into the annotation of kubectl.
func define(t *testing.T, cluster *yaretest.Cluster, crds []*crd.CustomResourceDefinition) {
	t.Helper()
	var manifest strings.Builder
	if err := crd.WriteYAML(&manifest, crds...); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := cluster.TryKubectl(t, manifest.String(), "apply", "-f", "-"); err != nil || stderr != "" {
		t.Fatalf("kubectl apply: %v\n%s", err, stderr)
	}
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
}

func acceptsAndRefuses(t *testing.T, cluster *yaretest.Cluster) {
	namespace := cluster.Namespace(t)
	plant := func(spec string) string {
		return "apiVersion: plants.example.com/v1\nkind: Plant\nmetadata: {generateName: p-}\nspec: " + spec
	}
	webapp := func(rest string) string {
		return "apiVersion: example.com/v1\nkind: WebApp\nmetadata: {generateName: w-}\n" + rest
	}
	for _, tc := range []struct {
		name, object string
		// want holds parts of the refusal. If it is empty, the object is accepted.
		want []string
	}{
		{"book", "apiVersion: example.technosophos.com/v1\nkind: Book\nmetadata: {generateName: b-}\nspec: {title: Moby Dick, authors: [Herman Melville]}", nil},
		{"book without a title", "apiVersion: example.technosophos.com/v1\nkind: Book\nmetadata: {generateName: b-}\nspec: {}", []string{"spec.title", "Required"}},
		{"book without a spec", "apiVersion: example.technosophos.com/v1\nkind: Book\nmetadata: {generateName: b-}", []string{"spec", "Required"}},
		{"book with a null list", "apiVersion: example.technosophos.com/v1\nkind: Book\nmetadata: {generateName: b-}\nspec: {title: x, authors: null}", nil},
		{"book by a number", "apiVersion: example.technosophos.com/v1\nkind: Book\nmetadata: {generateName: b-}\nspec: {title: x, authors: [1]}", []string{"spec.authors[0]", "string"}},
		{"book with an unknown field", "apiVersion: example.technosophos.com/v1\nkind: Book\nmetadata: {generateName: b-}\nspec: {title: x, autors: []}", []string{"spec.autors", "unknown field"}},
		{"member", "apiVersion: helloworld.apimeister.com/v1\nkind: Member\nmetadata: {generateName: m-}\nspec: {}", nil},
		{"echo", "apiVersion: example.com/v1\nkind: Echo\nmetadata: {generateName: e-}\nspec: {replicas: 2}", nil},
		{"echo below zero", "apiVersion: example.com/v1\nkind: Echo\nmetadata: {generateName: e-}\nspec: {replicas: -1}", []string{"spec.replicas", "greater than or equal to 0"}},
		{"echo beyond int32", "apiVersion: example.com/v1\nkind: Echo\nmetadata: {generateName: e-}\nspec: {replicas: 3000000000}", []string{"spec.replicas"}},
		{"myservice", "apiVersion: example.com/v1\nkind: MyService\nmetadata: {generateName: m-}\nspec: {replicas: 3, image: 'nginx:latest'}", nil},
		{"webapp", webapp("spec: {image: 'nginx:1.27', replicas: 3}"), nil},
		{"webapp without an image", webapp("spec: {image: '', replicas: 3}"), []string{"spec.image", "at least 1"}},
		{"certificate", "apiVersion: certs.example.com/v1\nkind: Certificate\nmetadata: {generateName: c-}\nspec: {secretName: x}", nil},
		{"old plant", "apiVersion: plants.example.com/v1beta1\nkind: Plant\nmetadata: {generateName: p-}\nspec: {code: abc}", nil},

		{"plant", plant("{}"), nil},
		{"plant with all", plant(`
  owner: me
  next: End
  ports: [{name: http, number: 80}, {name: https, number: 443}]
  limits: {cpu: 100m, memory: 1.5Gi, pods: 3, disk: 1e3}
  target: 80
  timeout: 1h30m
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}], resources: {limits: {cpu: 1}}}]}}
  free: {anything: [1, {goes: true}]}
  min: 1
  max: 2
  "null": null`), nil},
		{"enum", plant("{phase: Middle}"), []string{"spec.phase", `"Begin", "End"`}},
		{"key of a list twice", plant("{ports: [{name: a, number: 1}, {name: a, number: 2}]}"), []string{"spec.ports[1]", "Duplicate"}},
		{"item out of range", plant("{ports: [{name: a, number: 70000}]}"), []string{"spec.ports[0].number", "65535"}},
		{"item without a key", plant("{ports: [{number: 1}]}"), []string{"spec.ports[0].name", "Required"}},
		{"quantity", plant("{limits: {cpu: lots}}"), []string{"spec.limits.cpu"}},
		{"int or string", plant("{target: [80]}"), []string{"spec.target"}},
		{"duration", plant("{timeout: soon}"), []string{"spec.timeout"}},
		{"uint8", plant("{nameless: {depth: 256}}"), []string{"spec.nameless.depth", "255"}},
		{"bounds of int64 and int32", plant("{seeds: 9223372036854774784, pots: 2147483647}"), nil},
		{"lower bounds of int64 and int32", plant("{seeds: -9223372036854774784, pots: -2147483647}"), nil},
		{"above the bound of int64", plant("{seeds: 9223372036854774785}"), []string{"spec.seeds", "less than or equal to"}},
		{"at the exclusive bound of int32", plant("{pots: -2147483648}"), []string{"spec.pots", "greater than -2"}},
		{"rule of a type", plant("{min: 2, max: 1}"), []string{"spec", "min must not be above max"}},
		{"rule of a field", plant("{max: 101}"), []string{"spec.max", "at most a hundred"}},
		{"one of a union", plant("{water: {rain: 1}}"), nil},
		{"one of a union with an escaped name", plant("{water: {my-tap: 1, lake: x}}"), nil},
		{"two of a union", plant("{water: {while: 1, my-tap: 0, lake: x}}"), []string{"spec.water", "exactly one of the fields in [rain my-tap while] must be set"}},
		{"none of a union", plant("{water: {lake: x}}"), []string{"spec.water", "exactly one of the fields in [rain my-tap while] must be set"}},
		{"two where one is allowed", plant("{water: {rain: 1, lake: x, a.sea: z}}"), []string{"spec.water", "at most one of the fields in [lake a.sea] may be set"}},
		{"none where one is needed", plant("{water: {my-tap: 1}}"), []string{"spec.water", "at least one of the fields in [lake rain] must be set"}},
		{"rule of the whole", "apiVersion: plants.example.com/v1\nkind: Plant\nmetadata: {name: weed}\nspec: {}", []string{"weeds have no place here"}},
		{"pattern", plant("{code: 'a,'}"), []string{"spec.code", "^[a-z]+(,[a-z]+)*$"}},
		{"pod template", plant("{template: {spec: {containers: [{name: c, ports: [{}]}]}}}"), []string{"spec.template.spec.containers[0].ports[0].containerPort", "Required"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, stderr, err := cluster.TryKubectl(t, tc.object, "create", "-n", namespace, "--dry-run=server", "-f", "-")
			switch {
			case len(tc.want) == 0 && err != nil:
				t.Errorf("refused: %s", stderr)
			case tc.name == "echo beyond int32" && serverminor.Of(t, cluster) < 36: // formats of integers are no limits there
			case len(tc.want) > 0 && err == nil:
				t.Error("accepted")
			case len(tc.want) > 0:
				for _, want := range tc.want {
					if !strings.Contains(stderr, want) {
						t.Errorf("the refusal lacks %q: %s", want, stderr)
					}
				}
			}
		})
	}
}

// usesTheDefinition checks what the server does with objects: defaults, pruning, columns,
// subresources, explanations.
func usesTheDefinition(t *testing.T, cluster *yaretest.Cluster) {
	namespace := cluster.Namespace(t)
	kubectl := func(stdin string, args ...string) string {
		t.Helper()
		return cluster.Kubectl(t, stdin, append([]string{"-n", namespace}, args...)...)
	}

	kubectl("apiVersion: plants.example.com/v1\nkind: Plant\nmetadata: {name: rose}\nspec: {template: {metadata: {labels: {a: b}}}}", "create", "-f", "-")
	got := kubectl("", "get", "plants.plants.example.com", "rose", "-o",
		"jsonpath={.spec.phase} {.spec.nameless.depth} {.spec.target} {.spec.timeout} {.spec.template.metadata.labels.a}")
	if want := "Begin 3 http 30s b"; got != want {
		t.Errorf("defaults and what is kept: %q, want %q", got, want)
	}

	kubectl("apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: hello}\nspec: {image: 'nginx:1.27', replicas: 3}", "create", "-f", "-")
	kubectl("", "patch", "webapp", "hello", "--subresource=status", "--type=merge", "-p",
		`{"status": {"availableReplicas": 2, "ready": false, "conditions": [
			{"type": "Ready", "status": "False", "reason": "Starting", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}`)
	header, row, _ := strings.Cut(kubectl("", "get", "wa", "hello", "-o", "wide"), "\n")
	if want := "NAME IMAGE AVAILABLE READY WHY AGE"; strings.Join(strings.Fields(header), " ") != want {
		t.Errorf("columns %q, want %q", header, want)
	}
	if want := "hello nginx:1.27 2 false Starting"; !strings.HasPrefix(strings.Join(strings.Fields(row), " "), want) {
		t.Errorf("row %q, want %q", row, want)
	}
	for image, want := range map[string]string{"nginx:1.27": "webapp.example.com/hello", "nginx:1.28": ""} {
		if got := strings.TrimSpace(kubectl("", "get", "webapps", "--field-selector=spec.image="+image, "-o", "name")); got != want {
			t.Errorf("with the image %s: %q, want %q", image, got, want)
		}
	}
	if _, stderr, err := cluster.TryKubectl(t, "", "-n", namespace, "get", "plants.v1alpha1.plants.example.com"); err == nil || !strings.Contains(stderr, "the server doesn't have a resource type") {
		t.Errorf("a version that is not served: %v %q", err, stderr)
	}
	kubectl("", "scale", "webapp", "hello", "--replicas=5")
	if got := kubectl("", "get", "webapp", "hello", "-o", "jsonpath={.spec.replicas}"); got != "5" {
		t.Errorf("replicas after scaling: %q", got)
	}
	if got := kubectl("", "get", "all", "-o", "name"); !strings.Contains(got, "webapp.example.com/hello") {
		t.Errorf("the category all has %q", got)
	}
	if _, stderr, err := cluster.TryKubectl(t, "", "-n", namespace, "get", "plants.v1beta1.plants.example.com", "rose"); err != nil || !strings.Contains(stderr, "v1beta1 is old; use v1") {
		t.Errorf("no deprecation warning: %v %q", err, stderr)
	}
	eventuallyExplains(t, cluster, "webapp.spec.image", "Image is the container image to run.")
	eventuallyExplains(t, cluster, "webapp", "WebApp is a web application.")
}

// eventuallyExplains waits for an explanation. The OpenAPI document of a server has a new
// definition after some seconds.
func eventuallyExplains(t *testing.T, cluster *yaretest.Cluster, what, want string) {
	t.Helper()
	var got, stderr string
	for range 100 {
		got, stderr, _ = cluster.TryKubectl(t, "", "explain", what)
		if strings.Contains(got, want) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Errorf("kubectl explain %s lacks %q: %s %s", what, want, got, stderr)
}
