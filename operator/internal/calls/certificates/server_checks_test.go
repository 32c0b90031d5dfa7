package certificates

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/followed"
)

// Server is a real API server for the checks of this file. Package yaretest has it, which this package cannot import:
// yaretest runs programs, and programs serve webhooks.
type Server struct {
	// Connect returns clients of an administrator and of an account with these rights in a namespace, and the namespace.
	Connect func(t *testing.T, rule rbacv1.PolicyRule) (admin, account *kube.Client, namespace string)
	// Eventually waits until check returns no error.
	Eventually func(t testing.TB, check func() error)
}

// newWorld returns a world with a real API server. Replicas have the permissions of [Verbs], for the Secret by its name, and
// no others.
func (s Server) newWorld(t *testing.T, names Names) *world {
	t.Helper()
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"web-webhooks"}}
	for _, verb := range Verbs() {
		rule.Verbs = append(rule.Verbs, string(verb))
	}
	admin, account, namespace := s.Connect(t, rule)
	return newWorldAt(t, admin, account, namespace, names)
}

// Replicas that start at once have one CA in the end, on a real server, where the Secret is missing or empty.
func CheckStartOnAServer(t *testing.T, apiServer Server) {
	t.Parallel()
	w := apiServer.newWorld(t, names())
	starts := 5
	if os.Getenv("YARE_WEBHOOK_FULL") != "" {
		starts = 100
	}
	for i := range starts {
		if i%2 == 0 {
			w.create()
		}
		w.start(3)
		w.waitUntilSettled()
		live := w.read()
		if s, err := decodeState(w.names, live.Data); err != nil || len(s.Authorities) != 1 {
			t.Fatalf("%d CAs: %v", len(s.Authorities), err)
		}
		w.mustCall(live.Data.Authorities)
		w.stopAll()
		w.delete()
	}
}

// A real server refuses the writes that could undo what another replica has done, and lets the Store repair the rest.
func CheckRepairOnAServer(t *testing.T, apiServer Server) {
	t.Parallel()
	w := apiServer.newWorld(t, names())
	w.start(2)
	w.waitUntilSettled()
	before := w.read()
	for what, damage := range map[string]func(){
		"deleted":    w.delete,
		"emptied":    w.empty,
		"unreadable": func() { w.replace(data{[]byte("a"), []byte("b"), []byte("c"), []byte("d")}) },
	} {
		damage()
		apiServer.Eventually(t, func() error {
			if !w.read().Data.isEqual(before.Data) {
				return fmt.Errorf("%s: the Secret is not what it was", what)
			}
			return nil
		})
		w.mustCall(before.Data.Authorities)
	}
	w.stopAll()

	live := w.read()
	old, gone := *live, *live
	old.Metadata.ResourceVersion = before.Metadata.ResourceVersion
	gone.Metadata.UID = "2c7f3a0e-0000-4000-8000-000000000000"
	for what, outdated := range map[string]*secret{"no Secret": {}, "an old version": &old, "another uid": &gone} {
		if _, err := w.secret.write(t.Context(), outdated, data{}); !followed.IsOutdated(err) {
			t.Errorf("a write for %s: %v", what, err)
		}
	}
	w.delete()
	if _, err := w.secret.write(t.Context(), live, before.Data); !followed.IsOutdated(err) {
		t.Errorf("a write for a Secret that was deleted: %v", err)
	}
	if s := w.read(); s.Metadata.UID != "" {
		t.Error("the write has made the Secret anew")
	}
}

// A real API server calls a webhook by a URL. It keeps the bundle of before a rotation, and the bundle of after it.
func CheckServerCallsAWebhook(t *testing.T, apiServer Server) {
	t.Parallel()
	w := apiServer.newWorld(t, LoopbackNames())
	w.offset = -200 * day // the first CA is made then, and is due for a rotation now
	store := w.start(1)[0].store
	w.waitUntilSettled()
	old := store.Bundle()

	var calls counter
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: store.GetCertificate, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		calls.add()
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		rw.Header().Set("Connection", "close") // each call makes a connection
		_ = json.NewEncoder(rw).Encode(review)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Close(); serving.Wait() })

	namespaces := kube.Everywhere[corev1.Namespace](w.secret.client)
	namespace, err := namespaces.Get(t.Context(), w.secret.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	url, policy, effects := "https://"+listener.Addr().String(), admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	configuration := func(bundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "web." + namespace.Name},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "web.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace.Name}},
				FailurePolicy:     &policy, SideEffects: &effects, AdmissionReviewVersions: []string{"v1"},
			}},
		}
	}
	made, err := kube.Everywhere[admissionregistrationv1.ValidatingWebhookConfiguration](w.secret.client).Create(t.Context(), configuration(old))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.secret.client.Delete(t.Context(), made); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	write := func() error {
		_, err := kube.Everywhere[corev1.ConfigMap](w.secret.client).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, GenerateName: "web-"}})
		return err
	}
	// The serving certificate of then has expired, and the CA is due for a rotation.
	w.moveTime(200 * day)
	if bundle := store.Bundle(); bytes.Equal(bundle, old) {
		t.Fatal("there was no rotation")
	}
	apiServer.Eventually(t, func() error {
		if err := write(); err != nil {
			return fmt.Errorf("with the old bundle: %w", err)
		}
		if calls.value() == 0 {
			return errors.New("the server does not call yet")
		}
		return nil
	})
	if _, err := kube.Everywhere[admissionregistrationv1.ValidatingWebhookConfiguration](w.secret.client).Modify(t.Context(), made.Name,
		func(c *admissionregistrationv1.ValidatingWebhookConfiguration) error {
			c.Webhooks[0].ClientConfig.CABundle = store.BundleFor(old)
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if calls.value() < 21 {
		t.Errorf("the server has called %d times", calls.value())
	}
	// The clock of the replica is 30 days ahead of that of the server, and then 30 days behind.
	for _, d := range []time.Duration{30 * day, -60 * day} {
		w.moveTime(d)
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	// A CA of somebody else is refused, so the test would notice.
	other, err := nextOf(LoopbackNames(), State{}, State{}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.Everywhere[admissionregistrationv1.ValidatingWebhookConfiguration](w.secret.client).Modify(t.Context(), made.Name,
		func(c *admissionregistrationv1.ValidatingWebhookConfiguration) error {
			c.Webhooks[0].ClientConfig.CABundle = encodeCertificates(other.Authorities)
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	apiServer.Eventually(t, func() error {
		if err := write(); err == nil || !strings.Contains(err.Error(), "certificate") {
			return fmt.Errorf("with another bundle: %v", err)
		}
		return nil
	})
}

// The permissions of Verbs are for the Secret by its name alone.
func CheckVerbs(t *testing.T, apiServer Server) {
	t.Parallel()
	w := apiServer.newWorld(t, names())
	other := newSecretClient(w.replicaClient, w.secret.Namespace, "other")
	if _, err := other.write(t.Context(), new(secret), data{}); !kube.IsForbidden(err) {
		t.Errorf("a write of another Secret: %v", err)
	}
	if _, err := other.Read(t.Context(), other.client); !kube.IsForbidden(err) {
		t.Errorf("a read of another Secret: %v", err)
	}
	all := wire.Stream{Resource: Resource(), Namespace: w.secret.Namespace}
	for _, err := range all.Pages(t.Context(), w.replicaClient) {
		if !kube.IsForbidden(err) {
			t.Errorf("a list of all Secrets: %v", err)
		}
	}
}
