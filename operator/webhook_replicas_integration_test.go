package operator_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/webhook"
	"github.com/yare-go/yare/yaretest"
)

type valveSpec struct {
	Size  int    `json:"size"`
	Color string `json:"color,omitempty"`
}

func (valveSpec) Definition() kube.Definition {
	return kube.Definition{Group: "replicas.example.com", Version: "v1", Kind: "Valve"}
}

type valve = kube.CustomResource[valveSpec, kube.None]

// valves is a program with webhooks.
func valves() operator.Program {
	return operator.Program{Parts: func() ([]operator.Part, error) {
		return []operator.Part{
			controller.New(func(context.Context, *valve, *kube.Client) (controller.Action, error) { return controller.Done(), nil }),
			webhook.Validate(func(_ context.Context, _, after *valve, _ *kube.Client) error {
				if after.Spec.Size > 10 {
					return field.Invalid(field.NewPath("spec", "size"), after.Spec.Size, "it is more than 10")
				}
				return nil
			}),
			webhook.Default(func(_ context.Context, v *valve) {
				if v.Spec.Color == "" {
					v.Spec.Color = "red"
				}
			}),
		}, nil
	}}
}

// valveReplica is a process of valves.
type valveReplica struct {
	webhooks, pages string
	stop            context.CancelFunc
	status          chan int
}

// startValves starts a replica with the account of a kubeconfig.
func startValves(t *testing.T, kubeconfig string) *valveReplica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	addresses := freeAddresses(t, 2)
	r := &valveReplica{webhooks: addresses[0], pages: addresses[1], stop: cancel, status: make(chan int, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		status, _, log := operator.CallProgram(ctx, "valves", valves(), "run", "--kubeconfig", kubeconfig,
			"--webhooks", r.webhooks, "--listen", r.pages, "--leader-elect", "--lease-duration", "3s")
		if status != 0 || strings.Contains(log, "orbidden") || strings.Contains(log, "may not") {
			t.Errorf("status %d, %s", status, log)
		}
		r.status <- status
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

// readiness returns an error unless the replica is ready.
func (r *valveReplica) readiness() error {
	response, err := http.Get("http://" + r.pages + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", text)
	}
	return nil
}

// review sends the creation of a valve to a webhook of a replica, as an API server with this bundle does.
func (r *valveReplica) review(bundle []byte, host, path string, v *valve) (*admissionv1.AdmissionResponse, error) {
	object, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Kind: metav1.GroupVersionKind{Group: "replicas.example.com", Version: "v1", Kind: "Valve"},
			Namespace: v.Namespace, Name: v.Name, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object},
		},
	})
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host}, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, r.webhooks)
		},
	}}
	response, err := client.Post("https://"+host+path+"?timeout=10s", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := new(admissionv1.AdmissionReview)
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil || answer.Response == nil {
		return nil, fmt.Errorf("%s: %w", response.Status, errors.Join(err, errors.New("no answer")))
	}
	return answer.Response, nil
}

// Two replicas with the permissions that the program prints, and no others, serve webhooks under one authority, whether
// they lead or not. The leader fills the configurations of the installation, and those that somebody makes again. The end of the
// leader changes nothing for the other replica.
func TestReplicasServeWebhooks(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[valve](t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	account := cluster.ServiceAccount(t, namespace)
	status, roles, stderr := operator.CallProgram(t.Context(), "valves", valves(), "permissions", "--namespace", namespace, "--webhooks=:9443", "--leader-elect")
	if status != 0 {
		t.Fatal(stderr)
	}
	for _, document := range strings.Split(roles, "---\n")[1:] {
		var role rbacv1.Role // a ClusterRole has the same fields
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		account.Allow(t, role.Namespace, role.Rules...)
	}
	name, host := "valves."+namespace, "valves."+namespace+".svc"
	install := func() {
		for _, kind := range []string{"Validating", "Mutating"} {
			cluster.Kubectl(t, "apiVersion: admissionregistration.k8s.io/v1\nkind: "+kind+"WebhookConfiguration\nmetadata: {name: "+name+"}\n", "apply", "--server-side", "-f", "-")
		}
	}
	install()
	first := startValves(t, account.Kubeconfig())
	yaretest.Eventually(t, first.readiness)
	second := startValves(t, account.Kubeconfig())
	yaretest.Eventually(t, second.readiness)

	t.Cleanup(func() {
		for _, o := range []kube.Object{
			&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}},
		} {
			if err := kube.IgnoreNotFound(client.Delete(context.Background(), o)); err != nil {
				t.Error(err)
			}
		}
	})
	var bundle []byte
	published := func() error {
		c, err := kube.Get[admissionregistrationv1.ValidatingWebhookConfiguration](t.Context(), client, "", name)
		if err != nil {
			return err
		}
		if len(c.Webhooks) != 1 || len(c.Webhooks[0].ClientConfig.CABundle) == 0 || len(c.OwnerReferences) != 1 || c.OwnerReferences[0].Name != namespace {
			return fmt.Errorf("the configuration has the owners %v and the entries %+v", c.OwnerReferences, c.Webhooks)
		}
		bundle = c.Webhooks[0].ClientConfig.CABundle
		return nil
	}
	yaretest.Eventually(t, published)
	check := func(r *valveReplica) error {
		v := &valve{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "v"}, Spec: valveSpec{Size: 11}}
		answer, err := r.review(bundle, host, "/validate.valves.replicas.example.com/v1", v)
		if err != nil {
			return err
		}
		if answer.Allowed || answer.Result.Code != 422 || len(answer.Result.Details.Causes) != 1 || answer.Result.Details.Causes[0].Field != "spec.size" {
			return fmt.Errorf("the validator answers %+v", answer)
		}
		v.Spec.Size = 1
		if answer, err = r.review(bundle, host, "/default.valves.replicas.example.com/v1", v); err != nil {
			return err
		}
		if !answer.Allowed || !strings.Contains(string(answer.Patch), `"red"`) {
			return fmt.Errorf("the defaulter answers %+v with the patch %s", answer, answer.Patch)
		}
		return nil
	}
	for _, r := range []*valveReplica{first, second} {
		yaretest.Eventually(t, func() error { return check(r) })
	}

	first.stop()
	for ended := false; !ended; {
		if err := check(second); err != nil {
			t.Fatalf("while the leader ends: %v", err)
		}
		select {
		case status := <-first.status:
			ended = true
			if status != 0 {
				t.Fatalf("the leader ended with the status %d", status)
			}
		case <-time.After(time.Millisecond):
		}
	}
	if err := client.Delete(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	install()
	yaretest.Eventually(t, published)
	if err := check(second); err != nil {
		t.Error(err)
	}
}

// Two processes of one program in one namespace, outside of a cluster, undid the configurations of each other. Now the
// second one ends with an error. It takes over what a killed process has left.
func TestTwoProcessesServeWebhooks(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Pump[Pumps]](t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := func() *yaretest.Process {
		return yaretest.Run(t, cluster.Kubeconfig(), self, "as:pumps", Pumps{}.Group(), "first", "", namespace, "run", "--watch-namespace", namespace)
	}
	checkRefused := func() error {
		p := &Pump[Pumps]{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "large"}}
		p.Spec.Size = 11
		if _, err := kube.Create(t.Context(), client, p, kube.DryRun()); !kube.IsInvalid(err) {
			return fmt.Errorf("a pump that is too large: %w", cmp.Or(err, errors.New("it was accepted")))
		}
		return nil
	}
	t.Cleanup(func() { // the last process is killed
		o := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "pumps." + namespace}}
		if err := kube.IgnoreNotFound(client.Delete(context.Background(), o)); err != nil {
			t.Error(err)
		}
	})
	first := start()
	yaretest.Eventually(t, checkRefused)
	second := start()
	second.WaitForLog(t, "another process of this program serves its webhooks at 127.0.0.1:")
	if status := second.Wait(t); status != 1 {
		t.Errorf("the second process ended with the status %d", status)
	}
	if err := checkRefused(); err != nil {
		t.Error(err)
	}
	first.Kill()
	start()
	yaretest.Eventually(t, checkRefused)
}
