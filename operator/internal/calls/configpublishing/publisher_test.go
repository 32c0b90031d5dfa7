package configpublishing_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/internal/calls/configpublishing"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/webhook"
)

// fakeWorld is a world on a server in memory.
type fakeWorld struct {
	*world
	server *fakeserver.Server
}

// inFakeWorld runs f with a server that has the Namespace shop, in a time of its own.
func inFakeWorld(t *testing.T, f func(t *testing.T, w *fakeWorld)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		w := &fakeWorld{&world{t: t, client: server.Client(), name: "web.shop", namespace: "shop"}, server}
		w.createNamespace()
		f(t, w)
	})
}

func (w *fakeWorld) createNamespace() types.UID {
	w.t.Helper()
	made, err := kube.Everywhere[corev1.Namespace](w.client).Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Finalizers: []string{"example.com/held"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.UID
}

// deleteNamespace deletes the Namespace, which its finalizer holds.
func (w *fakeWorld) deleteNamespace() {
	w.t.Helper()
	if err := kube.Everywhere[corev1.Namespace](w.client).Delete(context.Background(), "shop"); err != nil {
		w.t.Fatal(err)
	}
}

// createDeployment creates the Deployment of the installation, which a finalizer holds, as the tool managedBy does.
func (w *fakeWorld) createDeployment(managedBy string) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app.kubernetes.io/managed-by": managedBy}, Finalizers: []string{"example.com/held"}}
	if managedBy == "Helm" {
		meta.Annotations = map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop", "deployment.kubernetes.io/revision": "1"}
	}
	if _, err := kube.Create(context.Background(), w.client, &appsv1.Deployment{ObjectMeta: meta}); err != nil {
		w.t.Fatal(err)
	}
}

// deleteDeployment deletes the Deployment, which its finalizer holds.
func (w *fakeWorld) deleteDeployment() {
	w.t.Helper()
	if err := w.client.Delete(context.Background(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); err != nil {
		w.t.Fatal(err)
	}
}

// create creates both configurations, as manifests do: without entries.
func (w *fakeWorld) create(entries ...admissionv1.ValidatingWebhook) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Name: w.name, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}}
	_, err := kube.Everywhere[validating](w.client).Create(context.Background(), &validating{ObjectMeta: meta, Webhooks: entries})
	_, err2 := kube.Everywhere[mutating](w.client).Create(context.Background(), &mutating{ObjectMeta: meta})
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
}

// after waits for a time, and until nothing happens any more. Then the state must be want.
func (w *fakeWorld) after(d time.Duration, want string) {
	w.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if err := w.checkState(want); err != nil {
		w.t.Error(err)
	}
}

// wrote checks the number of writes of a replica so far.
func (r *replica) wrote(t *testing.T, want int64) {
	t.Helper()
	if n := r.writes.Load(); n != want {
		t.Errorf("there were %d writes, want %d", n, want)
	}
}

// serviceEntry returns an entry for a Service in the namespace shop.
func serviceEntry(name, service, bundle string) admissionv1.ValidatingWebhook {
	return admissionv1.ValidatingWebhook{Name: name, ClientConfig: admissionv1.WebhookClientConfig{
		Service: &admissionv1.ServiceReference{Namespace: "shop", Name: service}, CABundle: []byte(bundle),
	}}
}

// all returns the state in which each entry of the program has a bundle.
func all(bundle string) string {
	return crateEntry + "=" + bundle + " " + scaleEntry + "=" + bundle + " | " + defaultEntry + "=" + bundle
}

// The leader fills the configurations of the manifests by one write each, and then writes nothing.
func TestLeaderPublishes(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		r := w.startLeader("A", crateValidator(), boxDefaulter())
		w.after(0, all("A"))
		w.after(time.Hour, all("A"))
		r.wrote(t, 2)
		live := w.get()
		namespace, err := kube.Everywhere[corev1.Namespace](w.client).Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if o := live.OwnerReferences; len(o) != 1 || o[0] != (metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "shop", UID: namespace.UID}) {
			t.Errorf("the owners are %+v", o)
		}
		if live.Labels["a"] != "b" || len(live.Labels) != 1 || live.Annotations["c"] != "d" {
			t.Errorf("the metadata is %+v", live.ObjectMeta)
		}
		for _, s := range r.Status() {
			if !s.Exists || !s.IsPublished {
				t.Errorf("the status is %+v", s)
			}
		}
	})
}

// A configuration that is missing, also from the beginning, is no business of the program, because only an installation makes it.
// The leader logs the command that makes it. A request that may have been on its way when the configuration was deleted makes none.
// Regression: the leader made a configuration again while Helm removed its installation, and all writes were refused afterwards.
func TestMissingConfiguration(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.createDeployment("Helm")
		r := w.startLeader("A", crateValidator())
		w.after(time.Hour, "? | ?")
		w.create()
		want := crateEntry + "=A " + scaleEntry + "=A |"
		w.after(10*time.Second, want)
		if s := r.Status(); len(s) != 1 || s[0] != (configpublishing.Status{Kind: "ValidatingWebhookConfiguration", Exists: true, IsPublished: true}) {
			t.Errorf("the status is %+v", s)
		}
		w.server.Before(func(_ context.Context, r *wire.Request) error { // the write that the next change leads to
			if r.Verb.IsWrite() && r.Query.Get("fieldManager") == "web" {
				w.server.Before(nil)
				return kube.Everywhere[validating](w.client).Delete(t.Context(), w.name)
			}
			return nil
		})
		w.edit(func(v *validating) { v.Webhooks = nil })
		w.after(time.Hour, "? |")
		r.wrote(t, 3) // the first, the owner of the other configuration, and the one that found nothing
		if s := r.Status(); len(s) != 1 || s[0] != (configpublishing.Status{Kind: "ValidatingWebhookConfiguration"}) {
			t.Errorf("the status is %+v", s)
		}
		const command = `command="echo '{\"apiVersion\":\"admissionregistration.k8s.io/v1\",\"kind\":\"ValidatingWebhookConfiguration\",\"metadata\":{\"name\":\"web.shop\",\"labels\":{\"app.kubernetes.io/managed-by\":\"Helm\",\"app.kubernetes.io/name\":\"web\"},\"annotations\":{\"meta.helm.sh/release-name\":\"web\",\"meta.helm.sh/release-namespace\":\"shop\"}}}' | kubectl create -f -"`
		if log := r.log.String(); strings.Count(log, "level=ERROR") != 2 || strings.Count(log, command) != 2 {
			t.Errorf("the log is %s", log)
		}
	})
}

// The states of the package comment. Each replica has seen the Deployment before the state begins, unless the Deployment is new.
func TestStates(t *testing.T) {
	const full = crateEntry + "=A " + scaleEntry + "=A"
	old, other := serviceEntry(crateEntry, "web", "old"), serviceEntry("other.example.com", "other", "other")
	configurations := map[string]func(w *fakeWorld){
		"absent":    func(*fakeWorld) {},
		"printed":   func(w *fakeWorld) { w.create() },
		"emptied":   func(w *fakeWorld) { w.create(old); w.edit(func(v *validating) { v.Webhooks = nil }) },
		"entries":   func(w *fakeWorld) { w.create(old) },
		"of others": func(w *fakeWorld) { w.create(other) },
		"of both":   func(w *fakeWorld) { w.create(old, other) },
	}
	for _, c := range []struct {
		deployment, configuration string
		// the entries that each replica leaves
		replica, leader, ending string
	}{
		{"there", "absent", "?", "? logged", "?"},
		{"there", "printed", "", full, ""},
		{"there", "emptied", "", full, ""},
		{"there", "entries", crateEntry + "=A", full, crateEntry + "=A"},
		{"there", "of others", "other.example.com=other", full, "other.example.com=other"},
		{"deleted", "absent", "?", "?", "?"},
		{"deleted", "printed", "", "", ""},
		{"deleted", "emptied", "", "", ""},
		{"deleted", "entries", crateEntry + "=A", crateEntry + "=A", ""},
		{"gone", "absent", "?", "?", "?"},
		{"gone", "printed", "", "", ""},
		{"gone", "emptied", "", "", ""},
		{"gone", "entries", crateEntry + "=A", crateEntry + "=A", ""},
		{"gone", "of others", "other.example.com=other", "", "other.example.com=other"},
		{"gone", "of both", crateEntry + "=A other.example.com=other", crateEntry + "=A", "other.example.com=other"},
		{"unreadable", "printed", "", "", ""},
		{"unreadable", "entries", crateEntry + "=A", crateEntry + "=A", crateEntry + "=A"},
		{"never there", "absent", "?", "? logged", "?"},
		{"never there", "printed", "", full, ""},
		{"never there", "entries", crateEntry + "=A", full, crateEntry + "=A"},
		{"never readable", "printed", "", full, ""},
		{"never readable", "entries", crateEntry + "=A", full, crateEntry + "=A"},
		{"there, and the Namespace ends", "absent", "?", "?", "?"},
		{"there, and the Namespace ends", "printed", "", "", ""},
		{"gone, and the Namespace ends", "of both", "", "", ""},
	} {
		for role, want := range map[string]string{"replica": c.replica, "leader": c.leader, "ending": c.ending, "ending leader": c.ending} {
			t.Run(c.deployment+"/"+c.configuration+"/"+role, func(t *testing.T) {
				inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
					if !strings.HasPrefix(c.deployment, "never") {
						w.createDeployment("yare")
					}
					var isRefusing atomic.Bool
					isRefusing.Store(c.deployment == "never readable")
					w.server.Before(func(_ context.Context, r *wire.Request) error {
						if isRefusing.Load() && r.Resource.Plural == "deployments" {
							return fakeserver.Refusal(r, http.StatusForbidden, metav1.StatusReasonForbidden)
						}
						return nil
					})
					ending := make(chan struct{})
					r := w.newReplica(w.client, "A", func(c *configpublishing.Config) { c.Ending = ending }, crateValidator())
					if strings.HasSuffix(role, "leader") {
						r.elect()
					}
					r.run(t)
					synctest.Wait()
					if strings.HasPrefix(role, "ending") {
						close(ending)
						synctest.Wait()
					}
					logged := len(r.log.String())
					switch state, _, _ := strings.Cut(c.deployment, ","); state {
					case "deleted":
						w.deleteDeployment()
					case "gone":
						w.server.Remove("deployments", "shop", "web", nil)
					case "unreadable":
						isRefusing.Store(true)
					}
					if strings.HasSuffix(c.deployment, "the Namespace ends") {
						w.deleteNamespace()
					}
					configurations[c.configuration](w)
					want, isLogged := strings.CutSuffix(want, " logged")
					mutating := " |"
					if c.configuration == "absent" {
						mutating = " | ?"
					}
					w.after(10*time.Second, strings.TrimPrefix(want+mutating, " "))
					r.bundles.set("A") // the next look
					synctest.Wait()
					if hasLine := strings.Contains(r.log.String(), "is missing"); hasLine != isLogged && !(hasLine && strings.Contains(r.log.String()[:logged], "is missing")) {
						t.Errorf("that the log has the command is %t:\n%s", hasLine, r.log.String())
					}
				})
			})
		}
	}
}

// A replica looks at its Deployment until its end. Another Deployment of the same name keeps the entries.
func TestDeploymentEndsLate(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		w.createDeployment("yare")
		ending := make(chan struct{})
		r := w.newReplica(w.client, "A", func(c *configpublishing.Config) { c.Ending = ending }, crateValidator(), boxDefaulter())
		r.elect()
		r.run(t)
		w.after(0, all("A"))
		w.server.Remove("deployments", "shop", "web", nil)
		w.createDeployment("yare")
		close(ending)
		w.after(10*time.Second, all("A"))
		w.server.Remove("deployments", "shop", "web", nil)
		w.after(3*time.Second, "|")

		// The end of Run alone is enough.
		w.createDeployment("yare")
		r.stop()
		r = w.startLeader("A", crateValidator(), boxDefaulter())
		w.after(0, all("A"))
		w.server.Remove("deployments", "shop", "web", nil)
		w.after(time.Hour, all("A"))
		r.stop()
		w.after(0, "|")
	})
}

// Two replicas of a Deployment that is gone end. The leader has decided to add its entries, and then the other replica removes them.
func TestReplicasEndAtOnce(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		w.createDeployment("yare")
		leader := w.startLeader("A", crateValidator(), boxDefaulter())
		w.after(0, all("A"))
		other := w.start("A", crateValidator(), boxDefaulter())
		synctest.Wait()
		w.server.Remove("deployments", "shop", "web", nil)
		other.stop()
		w.after(time.Hour, "|")
		leader.wrote(t, 2)
		leader.stop()
		w.after(0, "|")
	})
}

// No entry is published without a bundle. The bundle is published when it is known, and when it changes.
func TestBundleThatComesLate(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		r := w.startLeader("", crateValidator(), boxDefaulter())
		w.after(time.Minute, "|")
		r.wrote(t, 2) // the owner
		if err := r.Ready(); err != nil {
			t.Errorf("no entry lacks a bundle: %v", err)
		}
		r.bundles.set("A")
		w.after(0, all("A"))
		r.bundles.set("BA")
		w.after(0, all("BA"))
		r.wrote(t, 6)

		// Before the bundle is known, an entry that somebody else has changed stays.
		r.stop()
		w.edit(func(v *validating) { v.Webhooks[0].ClientConfig.CABundle = nil })
		r = w.startLeader("", crateValidator(), boxDefaulter())
		w.after(time.Minute, crateEntry+"= "+scaleEntry+"=BA | "+defaultEntry+"=BA")
		r.wrote(t, 0)
		r.bundles.set("A")
		w.after(0, crateEntry+"=A "+scaleEntry+"=BA | "+defaultEntry+"=BA")
	})
}

// Regression: a replica that led right after its start added its entries before an API server could reach it. Meanwhile it
// corrects and removes entries that exist.
func TestReplicaThatCannotBeReachedYet(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create(serviceEntry("old.example.com", "web", "old"), serviceEntry(crateEntry, "web", ""))
		reachable := make(chan struct{})
		r := w.newReplica(w.client, "A", func(c *configpublishing.Config) { c.Reachable = reachable }, crateValidator(), boxDefaulter())
		r.elect()
		r.run(t)
		w.after(time.Hour, crateEntry+"=A |")
		if err := r.Ready(); err != nil {
			t.Error(err)
		}
		close(reachable)
		w.after(0, all("A"))
	})
}

// A replica that does not lead publishes its bundle in the entries of all releases of the installation, and nothing else.
func TestReplicaThatDoesNotLead(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		r := w.start("A", crateValidator(), boxDefaulter())
		w.after(time.Minute, "? | ?")
		w.create(serviceEntry("old.example.com", "web", "old"), serviceEntry("other.example.com", "other", "other"), serviceEntry(crateEntry, "web", ""))
		before := w.get()
		w.after(0, "old.example.com=A other.example.com=other "+crateEntry+"=A |")
		r.wrote(t, 1)
		after := w.get()
		for i := range after.Webhooks {
			before.Webhooks[i].ClientConfig.CABundle = after.Webhooks[i].ClientConfig.CABundle
		}
		if len(after.OwnerReferences) != 0 || !equal(before.Webhooks, after.Webhooks) {
			t.Errorf("the configuration is %+v", after)
		}
		// It begins to lead: what the release has not goes.
		r.elect()
		w.after(0, all("A"))
	})
}

func equal(a, b []admissionv1.ValidatingWebhook) bool {
	x, err := kube.Marshal(a)
	y, err2 := kube.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// A leader removes the entries of a configuration that its release does not need any more. It never creates it.
func TestConfigurationOfAnEarlierRelease(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		old := w.startLeader("A", crateValidator(), boxDefaulter())
		w.after(0, all("A"))
		old.stop()
		r := w.startLeader("A", boxDefaulter())
		w.after(0, "| "+defaultEntry+"=A")
		r.wrote(t, 1)
		if s := r.Status(); len(s) != 1 {
			t.Errorf("the status is %+v", s)
		}
		// The next release has converters alone.
		r.stop()
		r = w.startLeader("A")
		w.after(0, "|")
		if err := r.Ready(); err != nil || len(r.Status()) != 0 {
			t.Errorf("the status is %+v, %v", r.Status(), err)
		}
	})
}

// A replica reports the webhooks that were removed a moment ago, whoever has removed them. Regression: an API server that had begun
// a call before the removal repeated the call until its timeout, and then the write of the user failed.
func TestRemovedWebhooks(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		const validatorPath, defaulterPath = "/validate.crates.publish.example.com/v1", "/default.boxes.publish.example.com/v1"
		check := func(when string, replica *replica, wantValidator, wantDefaulter bool) {
			t.Helper()
			if got, got2 := replica.IsRemoved(validatorPath), replica.IsRemoved(defaulterPath); got != wantValidator || got2 != wantDefaulter {
				t.Errorf("%s: the validator is removed: %t, want %t; the defaulter: %t, want %t", when, got, wantValidator, got2, wantDefaulter)
			}
		}
		earlier := w.start("A", boxDefaulter())
		check("before the first read", earlier, false, false)
		leader := w.startLeader("A", crateValidator(), boxDefaulter())
		w.after(0, all("A"))
		check("with all entries", earlier, false, false)
		leader.stop()
		time.Sleep(time.Minute)
		other := w.startLeader("A", boxDefaulter())
		w.after(0, "| "+defaultEntry+"=A")
		check("after the removal, at a replica that does not lead", earlier, true, false)
		check("after the removal, at the leader", other, true, false)
		w.after(39*time.Second, "| "+defaultEntry+"=A")
		check("39 s after the removal", earlier, true, false)
		w.after(time.Second, "| "+defaultEntry+"=A")
		check("40 s after the removal", earlier, false, false)
		other.stop()
		other = w.startLeader("A")
		w.after(0, "|")
		check("after the removal of the defaulter", earlier, false, true)
		other.stop()
		w.startLeader("A", boxDefaulter())
		w.after(0, "| "+defaultEntry+"=A")
		check("after the defaulter was added", earlier, false, false)
		// The path changes with the version of the type.
		configuration, err := kube.Everywhere[mutating](w.client).Get(t.Context(), w.name)
		if err != nil {
			t.Fatal(err)
		}
		earlier.bundles.set("BA")
		synctest.Wait()
		configuration.Webhooks[0].ClientConfig.Service.Path = new("/default.boxes.publish.example.com/v2")
		if _, err := kube.Everywhere[mutating](w.client).Modify(t.Context(), w.name, func(m *mutating) error {
			m.Webhooks = configuration.Webhooks
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		check("after the entry got another path", earlier, false, false)
	})
}

// An old replica and the leader of a new release do not fight. Each writes only what is its own.
func TestReleasesDoNotFight(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		old := w.start("A", crateValidator())
		leader := w.startLeader("A", boxValidator(), boxDefaulter())
		want := boxEntry + "=A | " + defaultEntry + "=A"
		w.after(time.Hour, want)
		old.wrote(t, 0)
		leader.wrote(t, 2)
		// The old replica rotates the CA first.
		old.bundles.set("BA")
		w.after(time.Hour, boxEntry+"=BA | "+defaultEntry+"=BA")
		leader.bundles.set("BA")
		w.after(time.Hour, boxEntry+"=BA | "+defaultEntry+"=BA")
		old.wrote(t, 2)
		leader.wrote(t, 2)
	})
}

// The leader corrects the fields that yare sets. It leaves the fields of others and the defaults of the server.
func TestFieldsOfOthers(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		r := w.startLeader("A", crateValidator())
		w.after(0, crateEntry+"=A "+scaleEntry+"=A |")
		w.edit(func(v *validating) {
			for i := range v.Webhooks { // as the defaults of a server
				v.Webhooks[i].NamespaceSelector, v.Webhooks[i].ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
			}
		})
		w.after(time.Hour, crateEntry+"=A "+scaleEntry+"=A |")
		r.wrote(t, 2) // with the owner of the other configuration
		// A selector that selects would switch the webhook off, so it is removed. The log names its manager.
		skip := &metav1.LabelSelector{MatchLabels: map[string]string{"skip": "no"}}
		w.edit(func(v *validating) {
			ten, ignore := int32(30), admissionv1.Ignore
			e := &v.Webhooks[0]
			e.NamespaceSelector, e.ObjectSelector, e.TimeoutSeconds, e.FailurePolicy = skip, skip, &ten, &ignore
			v.Webhooks = append(v.Webhooks, serviceEntry("other.example.com", "other", ""))
			slices.Reverse(v.Webhooks)
		})
		w.after(0, crateEntry+"=A "+scaleEntry+"=A |")
		r.wrote(t, 3)
		e := w.get().Webhooks[0]
		if e.NamespaceSelector != nil || e.ObjectSelector != nil || *e.TimeoutSeconds != 10 || *e.FailurePolicy != admissionv1.Fail {
			t.Errorf("the entry is %+v", e)
		}
		if log := r.log.String(); !strings.Contains(log, " of somebody") {
			t.Errorf("the log is %s", log)
		}
		w.edit(func(v *validating) { slices.Reverse(v.Webhooks) })
		w.after(0, crateEntry+"=A "+scaleEntry+"=A |")
		r.wrote(t, 4)
	})
}

// A platform that excludes its objects from the webhooks of everybody, and labels what it has seen, is not contradicted.
func TestExpressionsOfAPlatform(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		r := w.newReplica(w.client, "A", func(c *configpublishing.Config) { c.Target.Namespaces = []string{"shop"} }, crateValidator(), boxDefaulter())
		r.elect()
		r.run(t)
		w.after(0, all("A"))
		wrote := r.writes.Load()
		excluding := metav1.LabelSelectorRequirement{Key: "platform.example.com/managed", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"yes"}}
		for i := range 60 {
			w.edit(func(v *validating) {
				v.Labels["seen"], v.Annotations["seen"] = strconv.Itoa(i), strconv.Itoa(i)
				for j := range v.Webhooks {
					for _, s := range []**metav1.LabelSelector{&v.Webhooks[j].NamespaceSelector, &v.Webhooks[j].ObjectSelector} {
						if *s == nil {
							*s = new(metav1.LabelSelector)
						}
						next := *excluding.DeepCopy()
						next.Key += strconv.Itoa(i)
						(*s).MatchExpressions = append([]metav1.LabelSelectorRequirement{next}, (*s).MatchExpressions...)
					}
				}
			})
			w.after(time.Second, all("A"))
		}
		r.wrote(t, wrote)
		if log := r.log.String(); strings.Count(log, "level=WARN") != 1 || strings.Contains(log, "level=ERROR") ||
			!strings.Contains(log, "somebody") {
			t.Errorf("the log is %s", log)
		}
		if status := r.Status(); status[0].ForeignExpressions != 2 || status[1].ForeignExpressions != 0 {
			t.Errorf("the status is %+v", status)
		}
		// An entry that is corrected for another reason keeps them, behind the expression of the program.
		w.edit(func(v *validating) {
			five := int32(5)
			v.Webhooks[0].TimeoutSeconds = &five
		})
		w.after(0, all("A"))
		e := w.get().Webhooks[0]
		if n := len(e.NamespaceSelector.MatchExpressions); n != 61 || len(e.ObjectSelector.MatchExpressions) != 60 || *e.TimeoutSeconds != 10 {
			t.Errorf("the entry has %d expressions: %+v", n, e)
		}
		// Without the expression of the program, the webhook would be called for all namespaces.
		w.edit(func(v *validating) {
			v.Webhooks[0].NamespaceSelector.MatchExpressions = v.Webhooks[0].NamespaceSelector.MatchExpressions[:1]
		})
		w.after(0, all("A"))
		if e := w.get().Webhooks[0].NamespaceSelector.MatchExpressions; len(e) != 2 || e[0].Key != "kubernetes.io/metadata.name" {
			t.Errorf("the expressions are %+v", e)
		}
	})
}

// A release that excludes other objects than the one before removes the exclusions of that release, and keeps those of a
// platform. Its own exclusions count as nobody else's.
func TestExclusionsOfReleases(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		release := func(exclusion string) operator.Part {
			return webhook.ValidateForeign(webhook.ForeignOptions{Namespaces: "team," + exclusion, Objects: exclusion, OnCreate: true},
				func(context.Context, *corev1.Pod, *corev1.Pod, *kube.Client) error { return nil })
		}
		want := func(r *replica, state string, foreign int, keys ...string) {
			t.Helper()
			w.after(0, state)
			e := w.get().Webhooks[0]
			for name, s := range map[string]*metav1.LabelSelector{"namespaces": e.NamespaceSelector, "objects": e.ObjectSelector} {
				var got []string
				for _, each := range s.MatchExpressions {
					if each.Key != "kubernetes.io/metadata.name" && each.Key != "team" {
						got = append(got, each.Key+" "+string(each.Operator))
					}
				}
				if !slices.Equal(got, keys) {
					t.Errorf("the selector of %s has %q, not %q", name, got, keys)
				}
			}
			if status := r.Status(); status[0].ForeignExpressions != foreign {
				t.Errorf("%d entries have expressions of others, not %d", status[0].ForeignExpressions, foreign)
			}
		}
		w.create()
		first := w.startLeader("A", release("first!=x"))
		want(first, "validate.pods.core=A |", 0, "first NotIn")
		wrote := first.writes.Load()
		w.edit(func(v *validating) {
			for _, s := range []*metav1.LabelSelector{v.Webhooks[0].NamespaceSelector, v.Webhooks[0].ObjectSelector} {
				s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: "platform", Operator: metav1.LabelSelectorOpDoesNotExist})
			}
		})
		want(first, "validate.pods.core=A |", 1, "first NotIn", "platform DoesNotExist")
		first.wrote(t, wrote)
		first.leads.Store(false)
		first.stop()
		second := w.startLeader("A", release("!second"))
		want(second, "validate.pods.core=A |", 1, "second DoesNotExist", "platform DoesNotExist")
	})
}

// A platform that takes another way to call a defaulter again is not contradicted.
func TestReinvocationPolicyOfOthers(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		r := w.startLeader("A", boxDefaulter())
		w.after(0, "| "+defaultEntry+"=A")
		wrote, never := r.writes.Load(), admissionv1.NeverReinvocationPolicy
		if _, err := kube.Everywhere[mutating](w.client).Modify(context.Background(), w.name, func(m *mutating) error {
			m.Webhooks[0].ReinvocationPolicy = &never
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.after(time.Minute, "| "+defaultEntry+"=A")
		r.wrote(t, wrote)
	})
}

// A field that somebody changes again and again is logged once, with the manager.
func TestContestedFieldOfAConfiguration(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		var log logBuffer
		r := w.newReplica(w.client, "A", func(c *configpublishing.Config) {
			c.Contested = contested.NewReporter(slog.New(slog.NewTextHandler(&log, nil)), nil)
		}, crateValidator())
		r.elect()
		r.run(t)
		for range 20 {
			w.after(10*time.Second, crateEntry+"=A "+scaleEntry+"=A |")
			w.edit(func(v *validating) {
				five := int32(5)
				v.Webhooks[0].TimeoutSeconds = &five
			})
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, ".webhooks") || !strings.Contains(text, "somebody") {
			t.Errorf("the log is %s", text)
		}
	})
}

// The leader corrects what other owners leave alone: the uid of the Namespace, and a reference that blocks its deletion.
func TestOwner(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		w.startLeader("A", crateValidator())
		w.after(0, crateEntry+"=A "+scaleEntry+"=A |")
		owner := w.get().OwnerReferences[0]
		other := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "other", UID: "other"}
		isTrue, isFalse := true, false
		for what, change := range map[string]func(*metav1.OwnerReference){
			"wrong uid":    func(o *metav1.OwnerReference) { o.UID = "wrong" },
			"no owner":     func(o *metav1.OwnerReference) { *o = other },
			"blocks":       func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = &isTrue },
			"controller":   func(o *metav1.OwnerReference) { o.Controller = &isTrue },
			"explicit":     func(o *metav1.OwnerReference) { o.Controller, o.BlockOwnerDeletion = &isFalse, &isFalse },
			"nothing else": func(*metav1.OwnerReference) {},
		} {
			w.edit(func(v *validating) {
				changed := owner
				change(&changed)
				v.OwnerReferences = []metav1.OwnerReference{changed, other}
			})
			w.after(10*time.Second, crateEntry+"=A "+scaleEntry+"=A |")
			hasOther, n := false, 0
			for _, o := range w.get().OwnerReferences {
				hasOther = hasOther || o == other
				if o.Name == "shop" && o.UID == owner.UID && (o.Controller == nil || !*o.Controller) && (o.BlockOwnerDeletion == nil || !*o.BlockOwnerDeletion) {
					n++
				}
			}
			if !hasOther || n != 1 {
				t.Errorf("%s: the owners are %+v", what, w.get().OwnerReferences)
			}
		}
	})
}

// A replica that sees its Namespace end removes all entries, and the leader adds none. A Namespace of the same name that
// follows has another uid.
func TestNamespaceEnds(t *testing.T) {
	for _, isLeader := range []bool{true, false} {
		t.Run(map[bool]string{true: "leader", false: "replica"}[isLeader], func(t *testing.T) {
			inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
				w.create()
				r := w.startLeader("A", crateValidator(), boxDefaulter())
				w.after(0, all("A"))
				if !isLeader {
					r.stop()
					r = w.start("A", crateValidator(), boxDefaulter())
					synctest.Wait()
				}
				w.deleteNamespace()
				w.after(0, "|")
				r.bundles.set("BA")
				w.after(time.Hour, "|")
				if err := errors.Join(kube.Everywhere[validating](w.client).Delete(t.Context(), w.name), kube.Everywhere[mutating](w.client).Delete(t.Context(), w.name)); err != nil {
					t.Fatal(err)
				}
				w.after(time.Hour, "? | ?")
				w.server.Remove("namespaces", "", "shop", nil)
				w.after(time.Hour, "? | ?")
				if hasError := strings.Contains(r.log.String(), "Namespace shop does not exist"); hasError != isLeader {
					t.Errorf("the log is %s", r.log.String())
				}
				uid := w.createNamespace()
				w.after(time.Hour, "? | ?")
				w.create()
				if !isLeader {
					w.after(time.Hour, "|")
					return
				}
				w.after(10*time.Second, all("BA"))
				if o := w.get().OwnerReferences; len(o) != 1 || o[0].UID != uid {
					t.Errorf("the owners are %+v", o)
				}
			})
		})
	}
}

// The leader's watch of the Namespace lags behind. Another replica has removed the entries, and the leader must not add them
// again.
func TestNamespaceEndsUnseen(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		leader := w.startLeader("A", crateValidator(), boxDefaulter())
		w.after(0, all("A"))
		w.server.Stream(fakeserver.StreamID{Plural: "namespaces", FieldSelector: "metadata.name=shop"}).Freeze()
		w.deleteNamespace()
		w.edit(func(v *validating) { v.Webhooks = nil }) // as another replica
		w.after(0, "|")                                  // it has removed the entries of the other configuration
		leader.wrote(t, 3)
		if err := kube.Everywhere[validating](w.client).Delete(t.Context(), w.name); err != nil {
			t.Fatal(err)
		}
		w.after(time.Hour, "? |")
		leader.wrote(t, 3)
	})
}

// A write that somebody else precedes is decided anew.
func TestConflict(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create(serviceEntry("old.example.com", "web", "old"))
		w.server.Before(func(_ context.Context, r *wire.Request) error {
			if r.Verb == wire.VerbPatch && r.Query.Get("fieldManager") == "web" && r.Resource.Kind == "ValidatingWebhookConfiguration" {
				w.server.Before(nil)
				w.edit(func(v *validating) { v.Webhooks = append(v.Webhooks, serviceEntry("new.example.com", "web", "")) })
			}
			return nil
		})
		r := w.start("A", crateValidator(), boxDefaulter())
		w.after(0, "old.example.com=A new.example.com=A |")
		r.wrote(t, 2)
		if log := r.log.String(); strings.Contains(log, "ERROR") {
			t.Errorf("the log is %s", log)
		}
	})
}

// Two replicas publish the same bundle at once: one write changes each configuration.
func TestReplicasPublishAtOnce(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		replicas := []*replica{w.startLeader("A", crateValidator(), boxDefaulter())}
		w.after(0, all("A"))
		for range 4 {
			replicas = append(replicas, w.start("A", crateValidator(), boxDefaulter()))
		}
		w.after(0, all("A"))
		version := w.server.Version()
		for _, r := range replicas {
			r.bundles.set("BA")
		}
		w.after(0, all("BA"))
		if n := w.server.Version() - version; n != 2 {
			t.Errorf("%d writes changed something", n)
		}
	})
}

// A server that refuses writes is asked again after 1 to 5 s, and the log has the problem once.
func TestRefusedWrites(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		var isRefusing atomic.Bool
		isRefusing.Store(true)
		w.server.Before(func(_ context.Context, r *wire.Request) error {
			if isRefusing.Load() && r.Verb.IsWrite() && r.Query.Get("fieldManager") == "web" {
				return fakeserver.Refusal(r, http.StatusForbidden, metav1.StatusReasonForbidden)
			}
			return nil
		})
		r := w.startLeader("A", crateValidator(), boxDefaulter())
		w.after(time.Minute, "|")
		if n := r.writes.Load() / 2; n < 12 || n > 30 {
			t.Errorf("there were %d attempts in a minute", n)
		}
		isRefusing.Store(false)
		w.after(5*time.Second, all("A"))
		log := r.log.String()
		if strings.Count(log, "level=ERROR") != 2 || strings.Count(log, "changed again") != 2 {
			t.Errorf("the log is %s", log)
		}
	})
}

// The server refuses what the leader writes. The bundle is published nevertheless.
func TestBundleWithoutTheLeadersWrite(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create(serviceEntry("old.example.com", "web", "old"))
		r := w.newReplica(w.client, "A", func(c *configpublishing.Config) {
			c.Leader = w.client.With(func(wire.Handler) wire.Handler {
				return wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
					return nil, errors.New("the term ends")
				})
			})
		}, crateValidator())
		r.elect()
		r.run(t)
		w.after(0, "old.example.com=A |")
		r.wrote(t, 1)
		if log := r.log.String(); !strings.Contains(log, "the term ends") {
			t.Errorf("the log is %s", log)
		}
	})
}

// A server that drops a field that was written gets a bounded number of writes, and the log has the reason.
func TestServerThatDropsFields(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		dropping := w.client.With(func(next wire.Handler) wire.Handler {
			return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
				sent := *r
				sent.Body = []byte(strings.ReplaceAll(string(r.Body), `"matchPolicy":"Equivalent"`, `"matchPolicy":"Exact"`))
				return next.Do(ctx, &sent)
			})
		})
		r := w.newReplica(dropping, "A", nil, crateValidator())
		r.elect()
		r.run(t)
		w.after(time.Minute, crateEntry+"=A "+scaleEntry+"=A |")
		if n := r.writes.Load(); n > 140 {
			t.Errorf("there were %d writes in a minute", n)
		}
		if log := r.log.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "stores something else") {
			t.Errorf("the log is %s", log)
		}
	})
}

// While the server is away, somebody else changes a configuration. It is right 10 s after the server is back, although the
// watch waits longer by then.
func TestServerIsAway(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		r := w.startLeader("A", crateValidator(), boxDefaulter())
		w.after(0, all("A"))
		var isAway atomic.Bool
		isAway.Store(true)
		w.server.Before(func(_ context.Context, r *wire.Request) error {
			if isAway.Load() && r.Query.Get("fieldSelector") != "" {
				return fakeserver.Refusal(r, http.StatusInternalServerError, metav1.StatusReasonInternalError)
			}
			return nil
		})
		for _, s := range w.server.Streams() {
			s.Cut()
		}
		w.edit(func(v *validating) { v.Webhooks = nil })
		w.after(5*time.Minute, "| "+defaultEntry+"=A")
		isAway.Store(false)
		w.after(6*time.Second, all("A"))
		if log := r.log.String(); strings.Count(log, "level=ERROR") != 3 { // of both configurations, and of the Namespace
			t.Errorf("the log is %s", log)
		}
	})
}

// A program that undoes each write at once gets a bounded number of writes, and the log names it.
func TestProgramThatUndoesWrites(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create(serviceEntry("old.example.com", "web", "old"))
		w.server.After(func(_ context.Context, r *wire.Request) error {
			if r.Verb.IsWrite() && r.Query.Get("fieldManager") == "web" {
				w.edit(func(v *validating) { v.Webhooks[0].ClientConfig.CABundle = []byte("old") })
			}
			return nil
		})
		r := w.start("A", crateValidator(), boxDefaulter())
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := r.writes.Load(); n < 10 || n > 140 {
			t.Errorf("there were %d writes in a minute", n)
		}
		if log := r.log.String(); strings.Count(log, "level=ERROR") > 12 || !strings.Contains(log, "again and again") {
			t.Errorf("the log is %s", log)
		}
		w.server.After(nil)
		w.after(10*time.Second, "old.example.com=A |")
	})
}

// The watch lags behind the writes, and the server is restored from a backup.
func TestOldObservations(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create()
		backup := w.server.Snapshot()
		r := w.startLeader("A", crateValidator(), boxDefaulter())
		w.after(0, all("A"))
		w.server.Stream(fakeserver.StreamID{Plural: "validatingwebhookconfigurations", FieldSelector: "metadata.name=web.shop"}).Delay(time.Second)
		w.edit(func(v *validating) { v.Labels["x"] = "y" })
		r.bundles.set("BA") // under a version that is not the present one
		w.after(10*time.Second, all("BA"))
		r.wrote(t, 5) // one of them was a conflict
		w.server.Restore(backup)
		w.after(time.Minute, all("BA"))

		// The watch does not notice the restoration: its version has expired, and a list follows.
		for _, s := range w.server.Streams() {
			s.Expire()
		}
		w.server.Restore(backup)
		w.after(time.Minute, all("BA"))
	})
}

// A replica is ready once each entry that exists has its bundle, and stays ready.
func TestReady(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		w.create(serviceEntry("old.example.com", "web", "old"), serviceEntry("other.example.com", "other", "other"))
		r := w.newReplica(w.client, "", nil, crateValidator(), boxDefaulter())
		if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "ValidatingWebhookConfiguration web.shop has not been read") {
			t.Errorf("before the start: %v", err)
		}
		r.run(t)
		synctest.Wait()
		if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "entry old.example.com") {
			t.Errorf("without a bundle: %v", err)
		}
		w.after(time.Minute, "old.example.com=old other.example.com=other |")
		r.bundles.set("A")
		synctest.Wait()
		if err := r.Ready(); err != nil {
			t.Error(err)
		}
		w.server.Before(func(_ context.Context, r *wire.Request) error {
			return fakeserver.Refusal(r, http.StatusForbidden, metav1.StatusReasonForbidden)
		})
		r.bundles.set("BA")
		synctest.Wait()
		if err := r.Ready(); err != nil {
			t.Errorf("an entry has the last bundle: %v", err)
		}
		if s := r.Status(); s[0].IsPublished || !s[0].Exists || s[1].IsPublished || !s[1].Exists {
			t.Errorf("the status is %+v", s)
		}
	})
}

// A process in development removes its own configurations at its end, and not those of the next process.
func TestRemove(t *testing.T) {
	inFakeWorld(t, func(t *testing.T, w *fakeWorld) {
		at := func(url string) *replica {
			r := w.newReplica(w.client, "A", func(c *configpublishing.Config) {
				c.Target, c.Namespace, c.Elected = configuration.Target{URL: url}, "", nil
			}, crateValidator(), boxDefaulter())
			r.leads.Store(true)
			r.run(t)
			return r
		}
		first := at("https://127.0.0.1:1")
		w.after(0, all("A"))
		if o := w.get().OwnerReferences; len(o) != 0 {
			t.Errorf("the owners are %+v", o)
		}
		first.stop()
		next := at("https://127.0.0.1:2")
		w.after(0, all("A"))
		if err := first.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		w.after(0, all("A"))
		next.stop()
		if err := next.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		w.after(0, "? | ?")
		if err := next.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	w := &world{t: t, client: fakeserver.New().Client(), name: "web.shop", namespace: "shop"}
	for want, edit := range map[string]func(*configpublishing.Config){
		"set Name in the Config":                        func(c *configpublishing.Config) { c.Name = "" },
		"only Elected, Reachable, Ending and Contested": func(c *configpublishing.Config) { c.Leads = nil },
	} {
		var c configpublishing.Config
		w.newReplica(w.client, "A", func(config *configpublishing.Config) { c = *config }, crateValidator())
		edit(&c)
		if _, err := configpublishing.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error should have %q: %v", want, err)
		}
	}
}
