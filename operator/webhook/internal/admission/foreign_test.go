package admission_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
)

func foreignValidatorOf[T any, P kube.ObjectOf[T]](o admission.ForeignOptions) *admission.Webhook {
	return admission.ForeignValidator[T, P](o, func(context.Context, *T, *T, *kube.Client) error { return nil })
}

func foreignMutatorOf[T any, P kube.ObjectOf[T]](o admission.ForeignOptions) *admission.Webhook {
	return admission.ForeignMutator[T, P](o, func(context.Context, *T, *kube.Client) error { return nil })
}

// Options that cannot select, and options that nobody can have meant, are errors when the part is made.
func TestForeignOptionsThatAreWrong(t *testing.T) {
	t.Parallel()
	type options = admission.ForeignOptions
	type foreign = kube.CustomResource[foreignSpec, kube.None]
	pods := foreignValidatorOf[corev1.Pod]
	good := options{Objects: "a=b", OnCreate: true}
	for name, c := range map[string]struct {
		webhook *admission.Webhook
		want    string
	}{
		"no selector":                {pods(options{OnCreate: true}), "the webhook validate.pods.core: it has no selector"},
		"empty selectors":            {pods(options{OnCreate: true, Objects: " ", Namespaces: ","}), "Namespaces"},
		"no label selector":          {pods(options{OnCreate: true, Objects: "a=b=c"}), `the selector of Objects "a=b=c" is not valid`},
		"a comparison":               {pods(options{OnCreate: true, Objects: "a>1"}), `the selector of Objects "a>1" is not valid`},
		"no operation":               {pods(options{Objects: "a"}), "no request calls it: set OnCreate"},
		"objects with an eviction":   {pods(options{Objects: "a", Subresources: []string{"eviction"}}), "cannot select for the subresource eviction, whose body is of the kind Eviction and has no labels"},
		"objects with a scale":       {foreignValidatorOf[appsv1.Deployment](options{Objects: "a", Subresources: []string{"scale"}}), "of the kind Scale"},
		"a mutator with an eviction": {foreignMutatorOf[corev1.Pod](options{Namespaces: "a", Subresources: []string{"eviction"}}), "it cannot change the subresource eviction"},
		"a mutator of deletions":     {foreignMutatorOf[corev1.Pod](options{Objects: "a", OnDelete: true}), "a deletion has nothing to change"},
		"an unknown subresource":     {pods(options{Objects: "a", Subresources: []string{"binding"}}), `the subresource "binding" of pods`},
		"a subresource of Pods":      {foreignValidatorOf[appsv1.Deployment](options{Objects: "a", Subresources: []string{"resize"}}), `"resize" of deployments.apps`},
		"namespaces of Nodes":        {foreignValidatorOf[corev1.Node](options{Namespaces: "a", OnCreate: true}), "the kind Node is outside of namespaces"},
		"the control plane":          {pods(options{Namespaces: "kubernetes.io/metadata.name=kube-system", OnCreate: true}), "cannot select: no webhook of a kind of others is called about kube-system"},
		"all of the control plane":   {pods(options{Namespaces: "a,kubernetes.io/metadata.name in (kube-system,kube-public)", OnCreate: true}), "cannot select"},
		"a short timeout":            {pods(options{Objects: "a", OnCreate: true, Timeout: time.Millisecond}), "the Timeout is 1ms"},
		"a long timeout":             {pods(options{Objects: "a", OnCreate: true, Timeout: 11 * time.Second}), "the Timeout is 11s"},
		"half a second":              {pods(options{Objects: "a", OnCreate: true, Timeout: 1500 * time.Millisecond}), "whole seconds"},
		"an own kind":                {foreignValidatorOf[widget](good), "the program defines the kind Widget: take Validate"},
		"a name":                     {pods(options{Name: "A", Objects: "a", OnCreate: true}), `the Name "A" is not valid`},
		"no function":                {admission.ForeignMutator[corev1.Pod](good, nil), "mutate.pods.core: its function is nil"},
	} {
		if err := c.webhook.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, w := range map[string]*admission.Webhook{
		"Pods": pods(good), "a Foreign kind": foreignValidatorOf[foreign](good), "Nodes": foreignMutatorOf[corev1.Node](good),
		"labels of Namespaces":   foreignValidatorOf[corev1.Namespace](options{Namespaces: "a", OnCreate: true}),
		"a selected namespace":   pods(options{Namespaces: "kubernetes.io/metadata.name in (kube-system,shop)", OnCreate: true}),
		"an eviction by nothing": pods(options{Namespaces: "a", Subresources: []string{"eviction"}}),
	} {
		if err := w.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := admission.Check([]*admission.Webhook{pods(good), pods(good)}); err == nil || !strings.Contains(err.Error(), "or give one of kinds of others a Name") {
		t.Errorf("two of a kind: %v", err)
	}
	named := good
	named.Name = "evictions"
	if err := admission.Check([]*admission.Webhook{pods(good), pods(named)}); err != nil {
		t.Errorf("two with different names: %v", err)
	}
}

// An entry selects what the author has selected, and never the control plane or the namespace of the program.
func TestEntriesOfForeignKinds(t *testing.T) {
	t.Parallel()
	webhooks := []*admission.Webhook{
		foreignValidatorOf[corev1.Pod](admission.ForeignOptions{
			Name: "all", Namespaces: "team in (b,a),!frozen", OnCreate: true, OnUpdate: true, OnDelete: true, Subresources: []string{"resize", "eviction"},
			FailBecause: "the quota is a contract", Timeout: 10 * time.Second,
		}),
		foreignValidatorOf[corev1.Node](admission.ForeignOptions{Objects: "pool=gpu", Subresources: []string{"status"}}),
		foreignMutatorOf[corev1.Pod](admission.ForeignOptions{Objects: "inject=yes", OnCreate: true}),
	}
	service := configuration.Target{ServiceNamespace: "ops", ServiceName: "injector", Namespaces: []string{"shop", "ops"}}
	for _, target := range []configuration.Target{service, {URL: "https://127.0.0.1:1"}} {
		validating, mutating, err := admission.Entries(webhooks, target)
		if err != nil {
			t.Fatal(err)
		}
		watched, excluded := "", "kube-system kube-public kube-node-lease"
		if target.URL == "" {
			watched, excluded = "kubernetes.io/metadata.name In [shop ops], ", excluded+" ops"
		}
		excluded = "kubernetes.io/metadata.name NotIn [" + excluded + "], "
		var got []string
		for _, e := range slices.Concat(validating, mutating) {
			var rules []string
			var selectors [2]string
			for _, r := range e.Rules {
				rules = append(rules, strings.Join(r.Operations, ",")+" "+r.Resources[0])
			}
			for i, selector := range []*metav1.LabelSelector{e.ObjectSelector, e.NamespaceSelector} {
				if selector != nil {
					for _, each := range selector.MatchExpressions {
						selectors[i] += strings.TrimSuffix(fmt.Sprintf("%s %s %v", each.Key, each.Operator, each.Values), " []") + ", "
					}
				}
			}
			got = append(got, fmt.Sprintln(e.Name, e.FailurePolicy, e.TimeoutSeconds, e.ReinvocationPolicy, rules, selectors[0]+"; "+selectors[1]))
			namespaces, recorded := e.RecordedSelectors()
			if !reflect.DeepEqual(namespaces, e.NamespaceSelector) || !reflect.DeepEqual(recorded, e.ObjectSelector) {
				t.Errorf("%s records %v and %v", e.Name, namespaces, recorded)
			}
		}
		want := []string{
			fmt.Sprintln("all.validate.pods.core Fail 10 ", "[CREATE,UPDATE,DELETE pods UPDATE pods/resize CREATE pods/eviction]", "; "+watched+"frozen DoesNotExist, team In [a b], "+excluded),
			fmt.Sprintln("validate.nodes.core Ignore 3 ", "[UPDATE nodes/status]", "pool In [gpu], ; "),
			fmt.Sprintln("mutate.pods.core Ignore 3 IfNeeded", "[CREATE pods]", "inject In [yes], ; "+watched+excluded),
		}
		if strings.Join(got, "") != strings.Join(want, "") {
			t.Errorf("the entries are\n%swant\n%s", strings.Join(got, ""), strings.Join(want, ""))
		}
		encoded[admissionv1.ValidatingWebhook](t, validating)
	}
	service.Namespaces = []string{"ops"}
	if _, _, err := admission.Entries(webhooks, service); err == nil || !strings.Contains(err.Error(), "it would never be called: the program watches only the namespaces ops") {
		t.Errorf("a program that watches its own namespace: %v", err)
	}
}

// podReview returns the AdmissionReview of the creation of a Pod.
func podReview(pod string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1","kind":{"group":"","version":"v1","kind":"Pod"},` +
		`"name":"a","namespace":"shop","operation":"CREATE","userInfo":{"username":"jane"},"object":` + pod + `}}`
}

const (
	mutatePods   = "/mutate.pods.core/v1?timeout=3s"
	validatePods = "/validate.pods.core/v1?timeout=3s"
)

func mutatorOfPods(mutate func(p *corev1.Pod) error) *admission.Webhook {
	return admission.ForeignMutator(admission.ForeignOptions{Objects: "a", OnCreate: true}, func(_ context.Context, p *corev1.Pod, _ *kube.Client) error { return mutate(p) })
}

// A mutator changes and removes, and what the Go type lacks stays, also in lists that grow and shrink.
func TestMutations(t *testing.T) {
	t.Parallel()
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"x/y":"1","z":"2"}},"new":1,"spec":{"newer":{"a":1.50},"containers":[` +
		`{"name":"one","image":"i","age":1,"args":["a","b"]},{"name":"two","age":2,"env":[{"name":"A","value":"1","age":3}],"resources":{"limits":{"cpu":"1000m"}}}],` +
		`"tolerations":[{"key":"k","age":4},{"key":"l","age":5}]}}`
	with := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(pod) }
	agent := corev1.Container{Name: "agent"}
	for name, c := range map[string]struct {
		mutate func(p *corev1.Pod)
		want   string
	}{
		"nothing":              {func(*corev1.Pod) {}, pod},
		"a changed label":      {func(p *corev1.Pod) { p.Labels["x/y"] = "3" }, with(`"x/y":"1"`, `"x/y":"3"`)},
		"a removed label":      {func(p *corev1.Pod) { delete(p.Labels, "x/y") }, with(`"x/y":"1",`, ``)},
		"annotations":          {func(p *corev1.Pod) { p.Annotations = map[string]string{"a~/": "b"} }, with(`"metadata":{`, `"metadata":{"annotations":{"a~/":"b"},`)},
		"a container after":    {func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, agent) }, with(`"1000m"}}}]`, `"1000m"}}},{"name":"agent","resources":{}}]`)},
		"a container before":   {func(p *corev1.Pod) { p.Spec.Containers = slices.Insert(p.Spec.Containers, 0, agent) }, with(`"containers":[`, `"containers":[{"name":"agent","resources":{}},`)},
		"a container between":  {func(p *corev1.Pod) { p.Spec.Containers = slices.Insert(p.Spec.Containers, 1, agent) }, with(`,{"name":"two"`, `,{"name":"agent","resources":{}},{"name":"two"`)},
		"a removed container":  {func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[1:] }, with(`{"name":"one","image":"i","age":1,"args":["a","b"]},`, ``)},
		"a changed one, moved": {func(p *corev1.Pod) { p.Spec.Containers[1].Image = "j"; p.Spec.Containers = p.Spec.Containers[1:] }, with(`{"name":"one","image":"i","age":1,"args":["a","b"]},`, ``, `"age":2,`, `"age":2,"image":"j",`)},
		"a variable before": {func(p *corev1.Pod) {
			e := &p.Spec.Containers[1].Env
			*e = slices.Insert(*e, 0, corev1.EnvVar{Name: "B"})
		}, with(`"env":[`, `"env":[{"name":"B"},`)},
		"first variables": {func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "B"}} }, with(`"age":1,`, `"age":1,"env":[{"name":"B"}],`)},
		"an argument":     {func(p *corev1.Pod) { a := p.Spec.Containers[0].Args; a[1] = "c" }, with(`"a","b"`, `"a","c"`)},
		"limits": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": p.Spec.Containers[1].Resources.Limits["cpu"]}
		}, with(`"args":[`, `"resources":{"limits":{"cpu":"1"}},"args":[`)},
		"a toleration":        {func(p *corev1.Pod) { p.Spec.Tolerations[1].Value = "v" }, with(`"age":5`, `"age":5,"value":"v"`)},
		"one in place of one": {func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations[1:], corev1.Toleration{Key: "m"}) }, with(`{"key":"k","age":4},`, ``, `"age":5}`, `"age":5},{"key":"m"}`)},
		"no tolerations":      {func(p *corev1.Pod) { p.Spec.Tolerations = nil }, with(`,"tolerations":[{"key":"k","age":4},{"key":"l","age":5}]`, ``)},
	} {
		h, _ := newHandler(t, admission.Options{IsStrict: false}, mutatorOfPods(func(p *corev1.Pod) error { c.mutate(p); return nil }))
		a := answerOf(t, h, mutatePods, podReview(pod))
		got := pod
		if a.Patch != nil {
			got = applied(t, pod, a.Patch)
		}
		if !a.Allowed || !jsonpatch.Equal([]byte(got), []byte(c.want)) {
			t.Errorf("%s: %s makes\n%s, not\n%s", name, a.Patch, got, c.want)
		}
	}
}

// applied returns an object after a JSON patch.
func applied(t *testing.T, object string, text []byte) string {
	t.Helper()
	p, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	result, err := p.Apply([]byte(object))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(result)
}

// Whatever a mutator does to lists, the patch makes what the mutator has made.
func TestMutationsOfAnyLists(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	randomContainers := func() (all []corev1.Container) {
		names := strings.Split("abcdef", "")
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names[:random.IntN(len(names))] {
			c := corev1.Container{Name: name, Image: fmt.Sprint(random.IntN(2))}
			for range random.IntN(5) {
				c.Args = append(c.Args, fmt.Sprint(random.IntN(3)))
			}
			all = append(all, c)
		}
		return all
	}
	for range 2000 {
		before, after := corev1.Pod{Spec: corev1.PodSpec{Containers: randomContainers()}}, randomContainers()
		text, err := kube.Marshal(&before)
		if err != nil {
			t.Fatal(err)
		}
		h, _ := newHandler(t, admission.Options{IsStrict: true}, mutatorOfPods(func(p *corev1.Pod) error { p.Spec.Containers = after; return nil }))
		a := answerOf(t, h, mutatePods, podReview(string(text)))
		got := string(text)
		if a.Patch != nil {
			got = applied(t, got, a.Patch)
		}
		before.Spec.Containers = after
		want, err := kube.Marshal(&before)
		if err != nil || !a.Allowed || !jsonpatch.Equal([]byte(got), want) {
			t.Fatalf("seed %d: %v, %s of %s makes\n%s, not\n%s", seed, err, a.Patch, text, got, want)
		}
	}
}

// What a function of a kind of others returns decides as that of an own kind does. What fails passes in production, unless
// there is a reason to fail, and is refused in development and in tests.
func TestAnswersOfForeignWebhooks(t *testing.T) {
	t.Parallel()
	const pod = `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"one"}]}}`
	for name, c := range map[string]struct {
		mutate func(p *corev1.Pod) error
		want   int32
		text   string
		// isFailure is true if the function fails.
		isFailure bool
	}{
		"a field error": {func(*corev1.Pod) error { return field.Forbidden(field.NewPath("spec", "nothing"), "no") }, 422, `Pod "a" is invalid: spec.nothing: Forbidden: no`, false},
		"another error": {func(*corev1.Pod) error { return errors.New("no") }, 403, "no", false},
		"a panic":       {func(*corev1.Pod) error { panic("no") }, 500, "panicked", true},
	} {
		validate := func(o admission.ForeignOptions) *admission.Webhook {
			return admission.ForeignValidator(o, func(_ context.Context, _, after *corev1.Pod, _ *kube.Client) error { return c.mutate(after) })
		}
		for path, w := range map[string]*admission.Webhook{mutatePods: mutatorOfPods(c.mutate), validatePods: validate(admission.ForeignOptions{Objects: "a", OnCreate: true})} {
			for _, isStrict := range []bool{true, false} {
				h, _ := newHandler(t, admission.Options{IsStrict: isStrict}, w)
				if c.isFailure && !isStrict {
					if r := send(t.Context(), h, path, podReview(pod)); r.Code != http.StatusInternalServerError || r.Header().Get("Retry-After") != "" || !strings.Contains(r.Body.String(), c.text) {
						t.Errorf("%s of %s: %d %s", name, path, r.Code, r.Body)
					}
					continue
				}
				if a := answerOf(t, h, path, podReview(pod)); a.Allowed || a.Status.Code != c.want || !strings.Contains(a.Status.Message, c.text) {
					t.Errorf("%s of %s, strict: %v: %+v", name, path, isStrict, a)
				}
			}
		}
		h, _ := newHandler(t, admission.Options{}, validate(admission.ForeignOptions{Objects: "a", OnCreate: true, FailBecause: "it is a contract"}))
		if a := answerOf(t, h, validatePods, podReview(pod)); a.Allowed || a.Status.Code != c.want {
			t.Errorf("%s with FailBecause: %+v", name, a)
		}
	}
	// A mutator that changes its own result.
	for _, isStrict := range []bool{true, false} {
		h, _ := newHandler(t, admission.Options{IsStrict: isStrict}, mutatorOfPods(func(p *corev1.Pod) error {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: strings.Repeat("x", len(p.Spec.Containers))})
			return nil
		}))
		a := answerOf(t, h, mutatePods, podReview(pod))
		if a.Allowed == isStrict || isStrict && !strings.Contains(a.Status.Message, "changes its own result") {
			t.Errorf("a second call that changes something, strict: %v: %+v", isStrict, a)
		}
	}
}

// An error that a Pod had before an update is only a warning, although nobody knows the schema of Pods.
func TestRatchetingOfForeignKinds(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t, admission.Options{IsStrict: true}, admission.ForeignValidator(admission.ForeignOptions{Objects: "a", OnUpdate: true},
		func(_ context.Context, _, after *corev1.Pod, _ *kube.Client) error {
			var errs []error
			for i, c := range after.Spec.Containers {
				if c.Image == "bad" {
					errs = append(errs, field.Forbidden(field.NewPath("spec", "containers").Index(i).Child("image"), "it is bad"))
				}
			}
			return errors.Join(errs...)
		}))
	body := func(before, after string) string {
		b, a := `{"spec":{"containers":[`+before+`]}}`, `{"spec":{"containers":[`+after+`]}}`
		return strings.Replace(strings.Replace(podReview(a), `"CREATE"`, `"UPDATE"`, 1), `"object"`, `"oldObject":`+b+`,"object"`, 1)
	}
	const good, bad = `{"name":"a","image":"good"}`, `{"name":"b","image":"bad"}`
	if a := answerOf(t, h, validatePods, body(bad, good+","+bad)); !a.Allowed || len(a.Warnings) != 1 {
		t.Errorf("an old error at another place: %+v", a)
	}
	if a := answerOf(t, h, validatePods, body(good, good+","+bad)); a.Allowed {
		t.Errorf("a new error: %+v", a)
	}
}

// podLabels has only the metadata of a Pod.
type podLabels struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (podLabels) Projection() (wire.Resource, error) { return kube.ResourceOf[corev1.Pod]() }

// A mutator of a projection changes its fields, and leaves all others.
func TestMutationsOfProjections(t *testing.T) {
	t.Parallel()
	const pod = `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"one"}]}}`
	h, _ := newHandler(t, admission.Options{IsStrict: true}, admission.ForeignMutator(admission.ForeignOptions{Objects: "a", OnCreate: true},
		func(_ context.Context, p *podLabels, _ *kube.Client) error {
			p.Labels = map[string]string{"b": "c"}
			return nil
		}))
	const want = `{"metadata":{"name":"a","labels":{"b":"c"}},"spec":{"containers":[{"name":"one"}]}}`
	a := answerOf(t, h, mutatePods, podReview(pod))
	if !a.Allowed || !jsonpatch.Equal([]byte(applied(t, pod, a.Patch)), []byte(want)) {
		t.Errorf("%+v", a)
	}
}
