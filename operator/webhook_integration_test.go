package operator_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/operator/webhook"
	"github.com/yare-go/yare/yaretest"
)

// withWebhooks makes the program of an installation one with a validator and a defaulter, which nobody serves.
func withWebhooks[G interface{ Group() string }](i *installation) *installation {
	type robot = kube.CustomResource[robotSpec[G], kube.None]
	parts := i.program.Parts
	i.program.Parts = func() ([]operator.Part, error) {
		all, err := parts()
		return append(all,
			webhook.Validate(func(context.Context, *robot, *robot, *kube.Client) error { return nil }),
			webhook.Default(func(context.Context, *robot) {}),
		), err
	}
	i.t.Cleanup(func() {
		meta := metav1.ObjectMeta{Name: i.name + "." + i.in}
		for _, o := range []kube.Object{&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta}, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta}} {
			if err := kube.IgnoreNotFound(i.client.Delete(context.Background(), o)); err != nil {
				i.t.Logf("left behind: %v", err)
			}
		}
	})
	return i
}

// validating and mutating return how kubectl names the configurations of the installation.
func (i *installation) validating() [3]string {
	return [3]string{"validatingwebhookconfiguration", "", i.name + "." + i.in}
}

func (i *installation) mutating() [3]string {
	return [3]string{"mutatingwebhookconfiguration", "", i.name + "." + i.in}
}

// secret returns how kubectl names the Secret of the webhooks.
func (i *installation) secret() [3]string { return [3]string{"secret", i.in, i.name + "-webhooks"} }

// entryNames are the names of the entries of the installation, by the kinds of their configurations.
func (i *installation) entryNames() map[string]string {
	return map[string]string{"ValidatingWebhookConfiguration": "validate." + i.robots.String(), "MutatingWebhookConfiguration": "default." + i.robots.String()}
}

// writeAsOperator writes what the operator writes: an entry with a bundle, which nobody calls, and the data of the Secret.
func (i *installation) writeAsOperator(bundle []byte) {
	i.t.Helper()
	text := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\ndata: {authorities: YQ==}\n", i.secret()[2], i.in)
	for kind, name := range i.entryNames() {
		text += fmt.Sprintf("---\napiVersion: admissionregistration.k8s.io/v1\nkind: %s\nmetadata: {name: %s.%s}\nwebhooks:\n", kind, i.name, i.in)
		text += fmt.Sprintf(`- {name: %s, failurePolicy: Ignore, sideEffects: None, timeoutSeconds: 1, admissionReviewVersions: [v1],
  clientConfig: {caBundle: %s, service: {namespace: %s, name: %s, path: /a, port: 443}},
  rules: [{operations: [CREATE], apiGroups: [%s], apiVersions: [v1], resources: [nothings], scope: "*"}]}
`, name, base64.StdEncoding.EncodeToString(bundle), i.in, i.name, i.robots.Group)
	}
	i.cluster.Kubectl(i.t, text, "apply", "--server-side", "--force-conflicts", "--field-manager", i.name, "-f", "-")
}

// checkWritten fails the test unless what the operator has written is there.
func (i *installation) checkWritten(after string, bundle []byte) {
	i.t.Helper()
	for kind, name := range i.entryNames() {
		got := i.cluster.Kubectl(i.t, "", "get", kind, i.validating()[2], "-o", "jsonpath={.webhooks[*].name}:{.webhooks[*].clientConfig.caBundle}")
		if want := name + ":" + base64.StdEncoding.EncodeToString(bundle); strings.TrimSpace(got) != want {
			i.t.Errorf("%s: the %s has the entries and bundles %q, not %q", after, kind, got, want)
		}
	}
	if got := i.cluster.Kubectl(i.t, "", "get", "secret", i.secret()[2], "--namespace", i.in, "-o", "jsonpath={.type} {.data}"); strings.TrimSpace(got) != `Opaque {"authorities":"YQ=="}` {
		i.t.Errorf("%s: the Secret has the type and data %s", after, got)
	}
}

// stream returns what the command manifests prints.
func (i *installation) stream(args ...string) string {
	i.t.Helper()
	status, stream, stderr := i.call(append([]string{"manifests", "--image", "example.com/robots:v1", "--replicas=1"}, args...)...)
	if status != 0 {
		i.t.Fatalf("status %d, %s", status, stderr)
	}
	return stream
}

type groupOfServerSideApplies struct{}

func (groupOfServerSideApplies) Group() string { return "server-side.example.com" }

type groupOfClientSideApplies struct{}

func (groupOfClientSideApplies) Group() string { return "client-side.example.com" }

// Each kind of apply leaves alone the entries, the bundles and the data that the operator has written: with the kind of
// the first apply and with the others, and also when the manifests have entries.
func TestAppliesKeepWhatTheOperatorWrote(t *testing.T) {
	t.Parallel()
	serverSide, clientSide := []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, []string{"apply", "-f", "-"}
	helm := []string{"apply", "--server-side", "--force-conflicts", "--field-manager=helm", "-f", "-"} // as Helm since version 4
	for name, test := range map[string]struct {
		install func(*testing.T) *installation
		applies [][]string
	}{
		"server-side first": {func(t *testing.T) *installation {
			t.Helper()
			return withWebhooks[groupOfServerSideApplies](newInstallation[groupOfServerSideApplies](t))
		}, [][]string{serverSide, clientSide, helm}},
		"client-side first": {func(t *testing.T) *installation {
			t.Helper()
			return withWebhooks[groupOfClientSideApplies](newInstallation[groupOfClientSideApplies](t))
		}, [][]string{clientSide, serverSide}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, bundle := test.install(t), testcert.PEM(testcert.New(t, x509.Certificate{IsCA: true, BasicConstraintsValid: true}, nil).Leaf)
			i.cluster.Kubectl(t, i.stream(), test.applies[0]...)
			i.writeAsOperator(bundle)
			for _, command := range test.applies {
				for _, args := range [][]string{{}, {"--memory-limit=128Mi"}, {"--memory-limit=256Mi", "--webhook-entries"}} {
					i.cluster.Kubectl(t, i.stream(args...), command...)
					i.checkWritten(fmt.Sprint(command, args), bundle)
				}
				// Entries that were printed go with their next apply without entries, unless the operator has them too.
				i.writeAsOperator(bundle)
			}
		})
	}
}

type groupOfWebhookUninstalls struct{}

func (groupOfWebhookUninstalls) Group() string { return "webhook-uninstalls.example.com" }

// uninstall removes the configurations before anything else, also those that have lost their labels and have an owner.
// The Secret goes, too. A configuration of somebody else stays.
func TestUninstallOfWebhooks(t *testing.T) {
	t.Parallel()
	i := withWebhooks[groupOfWebhookUninstalls](newInstallation[groupOfWebhookUninstalls](t))
	i.cluster.Kubectl(t, i.stream("--webhook-entries"), "apply", "--server-side", "-f", "-")
	i.waitUntilReady(1)
	if _, stderr, err := i.cluster.TryKubectl(t, i.robot("refused"), "create", "-f", "-"); err == nil || !strings.Contains(stderr, "failed calling webhook") {
		t.Errorf("nobody answers, and the write is not refused: %v, %s", err, stderr)
	}
	uid := i.cluster.Kubectl(t, "", "get", "namespace", i.in, "-o", "jsonpath={.metadata.uid}")
	for _, each := range [][3]string{i.validating(), i.mutating()} {
		i.cluster.Kubectl(t, "", "patch", each[0], each[2], "--type=merge", "--patch",
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"`+i.in+`","uid":"`+uid+`"}]}}`)
	}
	// As somebody who has deleted both, and the operator that has made them again.
	i.cluster.Kubectl(t, "", "label", "mutatingwebhookconfiguration", i.mutating()[2], "app.kubernetes.io/instance-", "manifests.yare.dev/namespace-")
	i.cluster.Kubectl(t, "", "label", "secret", i.secret()[2], "--namespace", i.in, "app.kubernetes.io/instance-", "manifests.yare.dev/namespace-")
	other := [3]string{"validatingwebhookconfiguration", "", i.name}
	i.cluster.Kubectl(t, "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: "+i.name+"}\n", "create", "-f", "-")

	status, stdout, _ := i.call("uninstall", "--dry-run")
	if status != 0 || !strings.Contains(stdout, "would delete validatingwebhookconfigurations.admissionregistration.k8s.io "+i.validating()[2]) {
		t.Errorf("a dry run: status %d, %s", status, stdout)
	}
	i.checkExist(true, i.validating(), i.mutating(), i.secret(), [3]string{"clusterrolebinding", "", i.name + "." + i.in})
	status, stdout, stderr := i.call("uninstall")
	if status != 0 {
		t.Fatalf("status %d, %s\n%s", status, stderr, stdout)
	}
	lines := strings.Split(stdout, "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[1], "deleted validatingwebhookconfigurations.") || !strings.HasPrefix(lines[2], "deleted mutatingwebhookconfigurations.") {
		t.Errorf("the configurations are not removed first:\n%s", stdout)
	}
	i.checkExist(false, i.validating(), i.mutating(), i.secret(), [3]string{"deployment", i.in, i.name}, [3]string{"clusterrolebinding", "", i.name + "." + i.in})
	i.checkExist(true, other)
	i.cluster.Kubectl(t, "", "delete", other[0], other[2])
}

// robot returns a robot in the namespace default as YAML.
func (i *installation) robot(name string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: Robot\nmetadata: {namespace: default, name: %s}\nspec: {arms: 2}\n", i.robots.GroupVersion(), name)
}

type groupOfOwners struct{}

func (groupOfOwners) Group() string { return "owners.example.com" }

// The Namespace of an installation is the owner of the configurations. Its deletion removes them, so that the cluster
// can be written.
func TestNamespaceTakesConfigurationsAlong(t *testing.T) {
	t.Parallel()
	i := withWebhooks[groupOfOwners](newInstallation[groupOfOwners](t))
	i.cluster.Kubectl(t, i.stream("--webhook-entries"), "apply", "--server-side", "-f", "-")
	uid := i.cluster.Kubectl(t, "", "get", "namespace", i.in, "-o", "jsonpath={.metadata.uid}")
	for _, each := range [][3]string{i.validating(), i.mutating()} {
		i.cluster.Kubectl(t, "", "patch", each[0], each[2], "--type=merge", "--patch",
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"`+i.in+`","uid":"`+uid+`"}]}}`)
	}
	began := time.Now()
	i.cluster.Kubectl(t, "", "delete", "namespace", i.in, "--wait=false")
	yaretest.Eventually(t, func() error {
		if i.exists(i.validating()[0], "", i.validating()[2]) || i.exists(i.mutating()[0], "", i.mutating()[2]) {
			return errors.New("the configurations are still there")
		}
		return nil
	})
	t.Logf("the configurations are gone %s after the deletion of the Namespace", time.Since(began).Round(time.Millisecond))
	i.cluster.Kubectl(t, i.robot("written"), "create", "-f", "-")
	i.cluster.Kubectl(t, "", "delete", i.robots.String(), "written", "--namespace=default")
}

type groupOfRevocations struct{}

func (groupOfRevocations) Group() string { return "revocations.example.com" }

// revoke-webhook-authority replaces the authority that runs, and the bundle of a replica lacks the revoked one.
func TestRevokeWebhookAuthority(t *testing.T) {
	t.Parallel()
	i := withWebhooks[groupOfRevocations](newInstallation[groupOfRevocations](t))
	if status, _, stderr := i.call("revoke-webhook-authority"); status != 1 || !strings.Contains(stderr, "there is no Secret "+i.in+"/"+i.secret()[2]) {
		t.Errorf("without an installation: status %d, %s", status, stderr)
	}
	i.cluster.Kubectl(t, i.stream(), "apply", "--server-side", "-f", "-")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	// The second store stands for an authority that is published, and that the Secret has lost.
	var stores [2]*certificates.Store
	for n, name := range []string{i.secret()[2], "lost"} {
		store, err := certificates.New(certificates.Config{
			Client: i.client.WithFieldManager(i.name), Namespace: i.in, Secret: name, Names: certificates.ServiceNames(i.name, i.in), Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { _ = store.Run(ctx) })
		yaretest.Eventually(t, store.Ready)
		stores[n] = store
	}
	published := slices.Concat(stores[0].Bundle(), stores[1].Bundle())
	former := [][]byte{bytes.TrimSpace(stores[0].Bundle()), bytes.TrimSpace(stores[1].Bundle())}
	i.cluster.Kubectl(t, "", "patch", "validatingwebhookconfiguration", i.validating()[2], "--type=merge", "--patch",
		fmt.Sprintf(`{"webhooks":[{"name":"a.example.com","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1","caBundle":%q}}]}`, base64.StdEncoding.EncodeToString(published)))
	status, stdout, stderr := i.call("revoke-webhook-authority")
	for _, want := range []string{i.in + "/" + i.secret()[2], "https://127.0.0.1:", "read the bundles of validatingwebhookconfigurations", "1 published bundles"} {
		if status != 0 || !strings.Contains(stdout, want) {
			t.Errorf("status %d, without %q: %s\n%s", status, want, stdout, stderr)
		}
	}
	if strings.Contains(stdout+stderr, "BEGIN") {
		t.Error("the output has a key or a certificate")
	}
	yaretest.Eventually(t, func() error {
		bundle := stores[0].BundleFor(published)
		if len(bundle) == 0 || bytes.Contains(bundle, former[0]) || bytes.Contains(bundle, former[1]) {
			return errors.New("the replica publishes a revoked authority")
		}
		return nil
	})
}

type groupOfDoubles struct{}

func (groupOfDoubles) Group() string { return "doubles.example.com" }

// manifests --check names the configurations of others that have a webhook of the program for the same namespaces.
func TestCheckOfWebhooks(t *testing.T) {
	t.Parallel()
	i := withWebhooks[groupOfDoubles](newInstallation[groupOfDoubles](t))
	watched := i.cluster.Namespace(t)
	i.cluster.Kubectl(t, i.stream("--webhook-entries", "--watch-namespace", watched), "apply", "--server-side", "-f", "-")
	for namespace, isNoted := range map[string]bool{watched: true, "default": false} {
		status, _, stderr := i.call("manifests", "--image=i:1", "--check", "--without-definitions", "--namespace", "default", "--watch-namespace", namespace)
		want := i.validating()[2] + " of the installation " + i.name + " in the namespace " + i.in + " has the webhook validate." + i.robots.String()
		if status != 0 || strings.Contains(stderr, want) != isNoted {
			t.Errorf("for the namespace %s: status %d, that there is %q is not %t: %s", namespace, status, want, isNoted, stderr)
		}
	}
	if status, _, stderr := i.call("manifests", "--image=i:1", "--check"); status != 0 || strings.Contains(stderr, "has the webhook") {
		t.Errorf("the installation itself: status %d, %s", status, stderr)
	}
}
