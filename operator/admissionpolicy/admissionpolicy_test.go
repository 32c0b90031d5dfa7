package admissionpolicy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/admissionpolicy"
)

// call runs a command of a program of the tests, and returns what it prints.
func call(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	out, problems, err := tryCall(t, program, args...)
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, problems)
	}
	return out
}

func tryCall(t *testing.T, program string, args ...string) (out []byte, problems string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), programVariable+"="+program)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err = cmd.Output()
	return out, stderr.String(), err
}

// printed returns the policies and bindings that the command manifests prints.
func printed(t *testing.T, args ...string) (all []unstructured.Unstructured) {
	t.Helper()
	objects, err := manifest.Parse(call(t, programOfLamps, append([]string{"manifests", "--image=example.com/lamps:v1"}, args...)...))
	if err != nil {
		t.Fatal(err)
	}
	if last := objects[len(objects)-1]; last.GetKind() != "Deployment" {
		t.Errorf("the last object is a %s", last.GetKind())
	}
	for _, o := range objects {
		if strings.Contains(o.GetKind(), "AdmissionPolicy") {
			all = append(all, o)
		}
	}
	return all
}

// The manifests have the policies with the labels and the namespace of the installation, each with a binding. Nothing else
// differs from a program without policies: it needs no permission for them.
func TestManifests(t *testing.T) {
	t.Parallel()
	var names []string
	for _, o := range printed(t) {
		names = append(names, o.GetKind()+" "+o.GetName())
		if labels := o.GetLabels(); labels["app.kubernetes.io/instance"] != "lamps" || labels["manifests.yare.dev/namespace"] != "lamps-system" {
			t.Errorf("%s has the labels %v", o.GetName(), labels)
		}
		name, _, _ := unstructured.NestedString(o.Object, "spec", "policyName")
		if strings.HasSuffix(o.GetKind(), "Binding") && name != o.GetName() {
			t.Errorf("the binding %s is of the policy %s", o.GetName(), name)
		}
		if _, isNarrow, _ := unstructured.NestedMap(o.Object, "spec", "matchResources"); isNarrow {
			t.Errorf("the binding %s is narrowed", o.GetName())
		}
		if actions, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "validationActions"); o.GetKind() == "ValidatingAdmissionPolicyBinding" && !slices.Equal(actions, []string{"Deny"}) {
			t.Errorf("the binding %s has the actions %v", o.GetName(), actions)
		}
	}
	want := []string{
		"ValidatingAdmissionPolicy lamp-limit.lamps-system", "ValidatingAdmissionPolicyBinding lamp-limit.lamps-system",
		"MutatingAdmissionPolicy lamp-maps.lamps-system", "MutatingAdmissionPolicyBinding lamp-maps.lamps-system",
		"MutatingAdmissionPolicy lamps.lamps-system", "MutatingAdmissionPolicyBinding lamps.lamps-system",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the policies are %q, want %q", names, want)
	}
	if permissions := string(call(t, programOfLamps, "permissions")); strings.Contains(permissions, "admissionregistration") {
		t.Errorf("the program asks for %s", permissions)
	}
}

// The policies of an installation concern the namespaces that it watches.
func TestManifestsOfWatchedNamespaces(t *testing.T) {
	t.Parallel()
	bindings := 0
	for _, o := range printed(t, "--watch-namespace=team-a", "--watch-namespace=team-b", "--namespace=lamps-a") {
		if !strings.HasSuffix(o.GetName(), ".lamps-a") {
			t.Errorf("the name %s has no namespace", o.GetName())
		}
		if !strings.HasSuffix(o.GetKind(), "Binding") {
			continue
		}
		bindings++
		text, err := json.Marshal(o.Object["spec"])
		if err != nil || !strings.Contains(string(text), `"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["team-a","team-b"]}]`) {
			t.Errorf("the binding %s has %s, %v", o.GetName(), text, err)
		}
	}
	if bindings != 3 {
		t.Errorf("there are %d bindings, want 3", bindings)
	}
}

// A chart has the policies with the namespace of the release.
func TestChart(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "chart")
	call(t, programOfLamps, "manifests", "--helm", folder)
	files, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	if !strings.Contains(all.String(), "lamp-limit.{{ .Release.Namespace }}") {
		t.Errorf("the templates lack the policy: %s", all.String())
	}
}

// What an author gives wrong is an error that names the policy and the way out.
func TestMistakes(t *testing.T) {
	t.Parallel()
	binding := func(name, policy string) *admissionv1.ValidatingAdmissionPolicyBinding {
		return &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy},
		}
	}
	parametrized := limit("params.data.size == '1'")
	parametrized.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	for want, part := range map[string]operator.Part{
		"a MutatingAdmissionPolicy or one of its bindings is nil":                           admissionpolicy.Mutating(nil),
		"a ValidatingAdmissionPolicy or one of its bindings is nil":                         admissionpolicy.Validating(limit("true"), nil),
		"validatingadmissionpolicies.admissionregistration.k8s.io: the name is empty":       admissionpolicy.Validating(new(admissionv1.ValidatingAdmissionPolicy)),
		"the ValidatingAdmissionPolicy lamp-limit has a paramKind: give a binding":          admissionpolicy.Validating(parametrized),
		"validatingadmissionpolicybindings.admissionregistration.k8s.io: the name is empty": admissionpolicy.Validating(limit("true"), binding("", "")),
	} {
		if _, err := part.Needs(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := admissionpolicy.Validating(parametrized, binding("deny", ""), binding("warn", "lamp-limit")).Needs(); err != nil {
		t.Error(err)
	}
}

// Two policies of a kind with one name are an error.
func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	_, problems, err := tryCall(t, programWithTwins, "manifests", "--image=example.com/lamps:v1")
	if want := "two parts bring the ValidatingAdmissionPolicy lamp-limit.twins-system: give one another name"; err == nil || !strings.Contains(problems, want) {
		t.Errorf("%v, %s, want %q", err, problems, want)
	}
}
