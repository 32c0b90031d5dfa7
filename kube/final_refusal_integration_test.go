package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// countAttempts returns a client of cluster that counts in attempts how often it sends a request.
func countAttempts(t *testing.T, cluster *yaretest.Cluster, attempts *int) *kube.Client {
	t.Helper()
	config := cluster.Config()
	config.WrapAttempts = func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			*attempts++
			return next.Do(ctx, r)
		})
	}
	return must(kube.NewClient(config))(t)
}

// Bug: refusals for good that an API server answers with 500 were sent five times, and counted as writes that may have been
// carried out.
func TestFinalRefusals(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineShip(t, cluster)
	namespace := cluster.Namespace(t)
	attempts := 0
	c := countAttempts(t, cluster, &attempts)
	resource := func(group, version, kind, plural string) wire.Resource {
		return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, Plural: plural}
	}
	deployments, configMaps := resource("apps", "v1", "Deployment", "deployments"), resource("", "v1", "ConfigMap", "configmaps")
	ships := resource("kube-test.yare.dev", "v1", "Ship", "ships")
	deployment := func(container string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},
			"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[` + container + `]}}}}`
	}
	configMap := func(data string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},` + data + `}`
	}
	large := func(kilobytes int) string {
		return `{"apiVersion":"kube-test.yare.dev/v1","kind":"Ship","metadata":{"name":"web"},"spec":{"name":"a","rig":{},
			"cargo":{"a":"` + strings.Repeat("x", kilobytes<<10) + `"}}}`
	}
	must(c.Do(t.Context(), &wire.Request{Verb: wire.VerbCreate, Resource: deployments, Namespace: namespace,
		Body: []byte(deployment(`{"name":"web","image":"web:1"}`))}))(t)

	for name, test := range map[string]struct {
		resource wire.Resource
		content  string
		body     string
		message  string
	}{
		"key twice": {deployments, wire.ContentApply,
			deployment(`{"name":"web","env":[{"name":"LEVEL","value":"info"},{"name":"LEVEL","value":"debug"}]}`), "duplicate entries for key"},
		"undeclared field":      {deployments, wire.ContentApply, deployment(`{"name":"web","colour":"red"}`), "field not declared in schema"},
		"wrong type":            {configMaps, wire.ContentApply, configMap(`"data":{"a":5}`), "expected string"},
		"null in a list":        {deployments, wire.ContentApply, deployment(`null`), "may not have a null element"},
		"no quantity":           {deployments, wire.ContentApply, deployment(`{"name":"web","resources":{"limits":{"cpu":"much"}}}`), "quantities must match"},
		"no base64":             {configMaps, wire.ContentApply, configMap(`"binaryData":{"a":"%"}`), "illegal base64"},
		"patch without a key":   {deployments, wire.ContentStrategicPatch, `{"spec":{"template":{"spec":{"containers":[{"image":"a"}]}}}}`, "merge key"},
		"unknown kind of patch": {deployments, wire.ContentStrategicPatch, `{"spec":{"$patch":"turn"}}`, "unknown patch type"},
		"create of a version":   {configMaps, "", `{"metadata":{"name":"web","resourceVersion":"1"}}`, "resourceVersion should not be set"},
		"too large for etcd":    {ships, wire.ContentApply, large(1600), "request is too large"},
		"too large for gRPC":    {ships, wire.ContentApply, large(2200), "larger than max"},
	} {
		attempts = 0
		r := &wire.Request{Verb: wire.VerbPatch, Resource: test.resource, Namespace: namespace, Name: "web",
			ContentType: test.content, Query: map[string][]string{"fieldManager": {"test"}}, Body: []byte(test.body)}
		if test.content == "" {
			r.Verb, r.Name = wire.VerbCreate, ""
		}
		_, err := c.Do(t.Context(), r)
		if e, ok := kube.AsError(err); !ok || e.Code != http.StatusInternalServerError || !strings.Contains(e.Answer.Message, test.message) {
			t.Errorf("%s: the error is %v", name, err)
			continue
		}
		if attempts != 1 || kube.IsUnknown(err) || strings.Contains(err.Error(), "carried out") {
			t.Errorf("%s: after %d attempts the error is %v", name, attempts, err)
		}
	}
}

// A request that a webhook denies with the code 500 has not been carried out. A create is not repeated, because the webhook may take
// its whole time again.
// Bug: a create that a webhook denied with the code 500 counted as a write that may have been carried out.
func TestDenialOfAWebhookWithCode500(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	attempts := 0
	c := countAttempts(t, cluster, &attempts)
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID,
			Result: &metav1.Status{Code: http.StatusInternalServerError, Message: "the quota cannot be read"}}
		w.Header().Set("Content-Type", wire.ContentJSON)
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(webhook.Close)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "denial." + namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "denial.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &webhook.URL,
				CABundle: testcert.PEM(webhook.Certificate())},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		}},
	}
	made := must(kube.Everywhere[admissionregistrationv1.ValidatingWebhookConfiguration](c).Create(t.Context(), configuration))(t)
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), made) })
	var denied error
	yaretest.Eventually(t, func() error {
		attempts = 0
		_, denied = kube.Namespaced[corev1.ConfigMap](c, namespace).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}})
		if denied == nil {
			return errors.New("the API server does not call the webhook yet")
		}
		return nil
	})
	if e, ok := kube.AsError(denied); !ok || e.Code != http.StatusInternalServerError {
		t.Fatal(denied)
	}
	want := fmt.Sprintf(`admission webhook %q denied the request: the quota cannot be read`, "denial.example.com")
	if text := denied.Error(); attempts != 1 || kube.IsUnknown(denied) || !strings.Contains(text, want) || strings.Contains(text, "carried out") {
		t.Errorf("after %d attempts the error is %v", attempts, denied)
	}
}
