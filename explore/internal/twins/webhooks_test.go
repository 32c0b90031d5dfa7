package twins

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/webhook"
	"github.com/yare-go/yare/yaretest"
)

// The operators of this file have webhooks. An API server may call a webhook twice for one request.

// checkText refuses a Site without a text.
func checkText(_ context.Context, _, s *Site, _ *kube.Client) error {
	if s.Spec.Text == "" {
		return fmt.Errorf("spec.text is empty")
	}
	return nil
}

// validatingSites returns the parts of a program with a validator.
func validatingSites() []operator.Part {
	return append(parts(applyMainPage)(), webhook.Validate(checkText))
}

// countingCalls returns the parts of a program whose validator counts its calls. The page has the count.
func countingCalls() []operator.Part {
	var mu sync.Mutex
	calls := make(map[string]int)
	check := func(ctx context.Context, before, s *Site, c *kube.Client) error {
		if !webhook.CallOf(ctx).DryRun {
			mu.Lock()
			calls[s.Namespace+"/"+s.Name]++
			mu.Unlock()
		}
		return checkText(ctx, before, s, c)
	}
	reconcile := func(ctx context.Context, s *Site, c *kube.Client) (controller.Action, error) {
		page := newMainPage(s)
		mu.Lock()
		page.Data["checked"] = fmt.Sprint(calls[s.Namespace+"/"+s.Name])
		mu.Unlock()
		_, err := kube.Apply(ctx, c, page)
		return controller.Done(), err
	}
	return []operator.Part{controller.New(reconcile, controller.Owns[corev1.ConfigMap]()), webhook.Validate(check)}
}

// defaultingSites returns a function that makes the parts of a program with a defaulter of its own, because yare refuses a
// defaulter that changes its own result. complete returns the text of a Site.
func defaultingSites(complete func(text string) string) func() []operator.Part {
	serve := func(ctx context.Context, c *kube.Client) error {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review admissionv1.AdmissionReview
			var s Site
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil || json.Unmarshal(review.Request.Object.Raw, &s) != nil {
				http.Error(w, "the body is no review of a Site", http.StatusBadRequest)
				return
			}
			patch, err := json.Marshal([]map[string]string{{"op": "replace", "path": "/spec/text", "value": complete(s.Spec.Text)}})
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			review.Response = &admissionv1.AdmissionResponse{
				UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: new(admissionv1.PatchTypeJSONPatch),
			}
			_ = json.NewEncoder(w).Encode(review)
		}))
		defer server.Close()
		namespace := c.Namespaces()[0]
		bundle := testcert.PEM(server.Certificate())
		_, err := kube.Everywhere[admissionregistrationv1.MutatingWebhookConfiguration](c).Apply(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "sites." + namespace},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "texts.twins.example.com", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
				ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: bundle},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"twins.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"sites"}},
				}},
			}},
		})
		if err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	return func() []operator.Part {
		return append(parts(applyMainPage)(), operator.Watcher[Site](serve,
			controller.Writes[admissionregistrationv1.MutatingWebhookConfiguration](wire.VerbCreate, wire.VerbPatch)))
	}
}

// endWithMark returns a text with an exclamation mark at the end.
func endWithMark(text string) string { return strings.TrimSuffix(text, "!") + "!" }

// addMark adds an exclamation mark to a text, whatever its end is.
func addMark(text string) string { return text + "!" }

// webhookTwins returns the twins of this file.
func webhookTwins() []twin {
	steps := []finding.Step{applying("web", SiteSpec{Text: "hello"}), deleting("web")}
	twice := []faults.Kind{faults.WebhookTwice}
	return []twin{
		{name: "counts the calls of its validator", wrong: countingCalls, right: validatingSites, steps: steps, finds: twice, verdict: finding.Wrong},
		{name: "replaces a text at each call", wrong: defaultingSites(addMark), right: defaultingSites(endWithMark), steps: steps, finds: twice, verdict: finding.Wrong},
	}
}

// An exploration finds what is wrong with webhooks, and nothing in right ones, whatever happens to their calls.
func TestExploreWebhooks(t *testing.T) {
	explorePairs(t, webhookTwins(), "counts the calls of its validator", forgetDetection, func(t *testing.T, twin twin, o engine.Settings) {
		kinds, err := faults.ParseKinds("webhooks")
		if err != nil {
			t.Fatal(err)
		}
		o.Only = append(kinds, faults.Crash)
		requireHappened(t, requireNotFound(t, engine.Parts("twin", twin.right), o), o.Only)
	})
}

// labelPages returns the parts of a program that labels its pages by a webhook. No webhook is about a Site.
func labelPages() []operator.Part {
	label := func(_ context.Context, page *corev1.ConfigMap, _ *kube.Client) error {
		metav1.SetMetaDataLabel(&page.ObjectMeta, "twins.example.com/labeled", "yes")
		return nil
	}
	o := webhook.ForeignOptions{Namespaces: corev1.LabelMetadataName, OnCreate: true, OnUpdate: true}
	return append(parts(applyMainPage)(), webhook.MutateForeign(o, label))
}

// The faults of webhooks happen also to webhooks that are not about the objects of the user, and find nothing in right ones.
func TestExploreWebhooksOfOthers(t *testing.T) {
	if testing.Short() || os.Getenv(modeVariable) == modeRight {
		t.Skip("an exploration makes many runs")
	}
	t.Parallel()
	kinds, err := faults.ParseKinds("webhooks")
	if err != nil {
		t.Fatal(err)
	}
	cluster := yaretest.Shared(t)
	yaretest.Define[Site](t, cluster)
	steps := []finding.Step{applying("web", SiteSpec{Text: "hello"}), deleting("web")}
	o := engine.Settings{Config: cluster.Config(), Steps: steps, Seed: seedOf(t), Only: kinds}
	requireHappened(t, requireNotFound(t, engine.Parts("twin", labelPages), o), kinds)
}

// requireHappened fails t unless each kind has happened in an exploration.
func requireHappened(t *testing.T, record finding.Record, kinds []faults.Kind) {
	t.Helper()
	for _, k := range kinds {
		if record.Coverage.Kinds[k].Done == 0 {
			t.Errorf("%s has not happened: %+v, %+v", k, record.Coverage.NotApplicable, record.Coverage.FailedRuns)
		}
	}
}
