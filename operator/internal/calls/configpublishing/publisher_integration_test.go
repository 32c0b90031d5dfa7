package configpublishing_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configpublishing"
	"github.com/yare-go/yare/yaretest"
)

// serverWorld is a world on a real server. No program serves its webhooks, so entries refuse writes in its namespace users.
type serverWorld struct {
	*world
	cluster *yaretest.Cluster
	// users is the namespace with the objects that the webhooks are for.
	users string
	// account has the permissions of [configpublishing.Access], and no others.
	account *kube.Client
}

func newServerWorld(t *testing.T) *serverWorld {
	t.Helper()
	cluster := yaretest.Shared(t)
	yaretest.Define[crate](t, cluster)
	yaretest.Define[box](t, cluster)
	users := cluster.Namespace(t)
	w := &serverWorld{&world{t: t, client: cluster.Client(t), name: "web." + users, namespace: users + "-web"}, cluster, users, nil}
	w.createNamespace()
	account := cluster.ServiceAccount(t, users)
	account.Allow(t, "", rulesOf(configpublishing.Access(w.name, w.namespace, "web"))...)
	w.account = account.Client(t)
	t.Cleanup(func() {
		ctx := context.Background()
		w.release()
		for _, err := range []error{
			kube.Everywhere[corev1.Namespace](w.client).Delete(ctx, w.namespace),
			kube.Everywhere[validating](w.client).Delete(ctx, w.name), kube.Everywhere[mutating](w.client).Delete(ctx, w.name),
		} {
			if kube.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	return w
}

// rulesOf returns permissions as rules of RBAC.
func rulesOf(all []kube.Access) (rules []rbacv1.PolicyRule) {
	for _, a := range all {
		rule := rbacv1.PolicyRule{APIGroups: []string{a.Resource.Group}, Resources: []string{a.Resource.Plural}, ResourceNames: a.Names}
		for _, verb := range a.Verbs {
			rule.Verbs = append(rule.Verbs, string(verb))
		}
		rules = append(rules, rule)
	}
	return rules
}

// createNamespace creates the Namespace of the installation with a finalizer.
func (w *serverWorld) createNamespace() {
	w.t.Helper()
	if _, err := kube.Everywhere[corev1.Namespace](w.client).Create(w.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace, Finalizers: []string{"publish.example.com/held"}}}); err != nil {
		w.t.Fatal(err)
	}
}

// release removes the finalizer of the Namespace.
func (w *serverWorld) release() {
	_, err := kube.Everywhere[corev1.Namespace](w.client).Modify(context.Background(), w.namespace, func(n *corev1.Namespace) error {
		n.Finalizers = nil
		return nil
	})
	if kube.IgnoreNotFound(err) != nil {
		w.t.Error(err)
	}
}

// printed returns the manifests of the configurations without entries.
func (w *serverWorld) printed() string {
	const text = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"%sWebhookConfiguration","metadata":{"name":%q,"labels":{"app.kubernetes.io/name":"web"}}}` + "\n"
	return fmt.Sprintf(text+text, "Validating", w.name, "Mutating", w.name)
}

// startAll starts a leader and a replica that does not lead, with the permissions of Access.
func (w *serverWorld) startAll(bundle string) (leader, standby *replica) {
	edit := func(c *configpublishing.Config) { c.Target.Namespaces = []string{w.users} }
	leader = w.newReplica(w.account, bundle, edit, crateValidator(), boxDefaulter())
	leader.elect()
	standby = w.newReplica(w.account, bundle, edit, crateValidator(), boxDefaulter())
	leader.run(w.t)
	standby.run(w.t)
	return leader, standby
}

// soon waits for a state for 10 s.
func (w *serverWorld) soon(what, want string) {
	w.t.Helper()
	begin := time.Now()
	yaretest.Eventually(yaretest.Within(w.t, 10*time.Second), func() error {
		if err := w.checkState(want); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
	w.t.Logf("%s: right after %s", what, time.Since(begin).Round(time.Millisecond))
}

// write creates an object that a webhook is for.
func (w *serverWorld) write() error {
	_, err := kube.Create(w.t.Context(), w.client, &crate{ObjectMeta: metav1.ObjectMeta{Namespace: w.users, GenerateName: "crate-"}})
	return err
}

// The schedules of row 6: configurations that somebody replaces or deletes, a missing owner, and a Namespace that ends, that a
// finalizer holds, and that comes again. The account has no other permissions than those by name.
func TestConfigurationsOnAServer(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	w.cluster.Kubectl(t, w.printed(), "create", "-f", "-")
	leader, standby := w.startAll("A")
	w.soon("start", all("A"))
	yaretest.Eventually(t, func() error {
		if err := w.write(); err == nil || !strings.Contains(err.Error(), crateEntry) {
			return fmt.Errorf("the server does not call the webhook: %v", err)
		}
		return nil
	})

	leader.bundles.set("BA")
	standby.bundles.set("BA")
	w.soon("rotation", all("BA"))

	w.cluster.Kubectl(t, w.printed(), "replace", "-f", "-")
	w.soon("replaced without entries", all("BA"))
	w.edit(func(v *validating) { v.Webhooks[0].ClientConfig.CABundle = nil })
	w.soon("replaced without bundle", all("BA"))
	w.cluster.Kubectl(t, "", "delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", w.name)
	yaretest.Consistently(t, 2*time.Second, func() error { return w.checkState("? | ?") })
	commands := regexp.MustCompile(`command="echo '(.*)' \| kubectl create -f -"`).FindAllStringSubmatch(leader.log.String(), -1)
	if len(commands) != 2 {
		t.Fatalf("the log has %d commands: %s", len(commands), leader.log.String())
	}
	for _, c := range commands {
		w.cluster.Kubectl(t, strings.ReplaceAll(c[1], `\"`, `"`), "create", "-f", "-")
	}
	w.soon("made by the commands of the log", all("BA"))
	if label := w.get().Labels["app.kubernetes.io/name"]; label != "web" {
		t.Errorf("the label is %q", label)
	}
	w.edit(func(v *validating) { v.OwnerReferences = nil }) // a wrong uid is a race with the collector, which deletes the object
	w.hasOwnerSoon("no owner")
	w.soon("no owner", all("BA"))

	// The standby sees the end of the Namespace too. Here the leader is off.
	leader.stop()
	if err := kube.Everywhere[corev1.Namespace](w.client).Delete(t.Context(), w.namespace); err != nil {
		t.Fatal(err)
	}
	w.soon("the Namespace is held", "|")
	yaretest.Eventually(yaretest.Within(t, 10*time.Second), w.write)
	leader, _ = w.startAll("BA")
	yaretest.Consistently(t, 2*time.Second, func() error { return w.checkState("|") })
	leader.wrote(t, 0)

	w.release()
	// The Namespace is gone, and the collector has deleted what it owned. On a cluster with many kinds this takes a while.
	yaretest.Eventually(t, func() error { return w.checkState("? | ?") })
	yaretest.Consistently(t, 2*time.Second, func() error { return w.checkState("? | ?") })
	w.createNamespace()
	w.cluster.Kubectl(t, w.printed(), "create", "-f", "-")
	w.soon("the Namespace is there again", all("BA"))
	w.hasOwnerSoon("the Namespace is there again")
	yaretest.Consistently(t, 2*time.Second, func() error { return w.checkState(all("BA")) }) // the collector deletes nothing
}

// hasOwnerSoon waits until the Namespace owns the configuration of validators by its present uid, and nothing else does.
func (w *serverWorld) hasOwnerSoon(what string) {
	w.t.Helper()
	yaretest.Eventually(yaretest.Within(w.t, 10*time.Second), func() error {
		namespace, err := kube.Everywhere[corev1.Namespace](w.client).Get(w.t.Context(), w.namespace)
		if err != nil {
			return err
		}
		live, err := kube.Everywhere[validating](w.client).Get(w.t.Context(), w.name)
		if err != nil {
			return err
		}
		want := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: w.namespace, UID: namespace.UID}
		if o := live.OwnerReferences; len(o) != 1 || o[0] != want {
			return fmt.Errorf("%s: the owners are %+v", what, o)
		}
		return nil
	})
}

// Both kinds of kubectl apply of the printed configurations leave alone what was written. So nobody writes again.
func TestApplyOfTheManifests(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	for _, how := range []string{"client", "server"} {
		apply := []string{"apply", "-f", "-"}
		if how == "server" {
			apply = []string{"apply", "--server-side", "--field-manager=somebody", "-f", "-"}
		}
		w.cluster.Kubectl(t, w.printed(), apply...)
		leader, standby := w.startAll("A")
		w.soon(how, all("A"))
		before := w.get()
		writes := leader.writes.Load()
		for range 3 {
			w.cluster.Kubectl(t, strings.ReplaceAll(w.printed(), `"web"}`, `"web","next":"release"}`), apply...)
			w.cluster.Kubectl(t, w.printed(), apply...)
		}
		after := w.get()
		if !equal(before.Webhooks, after.Webhooks) || len(after.OwnerReferences) != 1 || len(after.Webhooks) != 2 {
			t.Errorf("%s: the configuration is %+v", how, after)
		}
		yaretest.Consistently(t, time.Second, func() error { return w.checkState(all("A")) })
		leader.wrote(t, writes)
		standby.wrote(t, 0)
		leader.stop()
		standby.stop()
		w.cluster.Kubectl(t, "", "delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", w.name)
	}
}

// Two replicas publish at once, and the leader of a new release runs beside a replica of an old one. The server stores each
// change once.
func TestReplicasOnAServer(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	var replicas []*replica
	for range 4 {
		r := w.newReplica(w.account, "A", nil, crateValidator()) // the old release
		r.run(t)
		replicas = append(replicas, r)
	}
	w.cluster.Kubectl(t, w.printed(), "create", "-f", "-")
	// No test writes boxes, so the entries are for all namespaces, and the server adds its defaults.
	leader := w.newReplica(w.account, "A", nil, boxValidator(), boxDefaulter())
	leader.elect()
	leader.run(t)
	state := func(bundle string) string { return boxEntry + "=" + bundle + " | " + defaultEntry + "=" + bundle }
	w.soon("start", state("A"))
	replicas = append(replicas, leader)
	bundle := "A"
	for i := range 5 {
		generation := w.get().Generation
		bundle = fmt.Sprint("B", i, bundle)
		for _, r := range replicas {
			r.bundles.set(bundle)
		}
		w.soon("rotation", state(bundle))
		if n := w.get().Generation - generation; n != 1 {
			t.Errorf("%d writes have changed the configuration of validators", n)
		}
	}
	yaretest.Consistently(t, time.Second, func() error { return w.checkState(state(bundle)) })
	var writes int64
	for _, r := range replicas {
		writes += r.writes.Load()
		if log := r.log.String(); strings.Contains(log, "level=ERROR") {
			t.Errorf("the log is %s", log)
		}
	}
	t.Logf("5 replicas have sent %d writes for 12 changes", writes)
	if writes > 2+5*2*5 {
		t.Errorf("there were %d writes", writes)
	}
}

// Somebody else writes between the read and the write of a replica. A real server refuses the write, and the replica
// decides anew.
func TestConflictsOnAServer(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	configurations := kube.Everywhere[validating](w.client)
	create := func() error {
		_, err := configurations.Create(t.Context(), &validating{ObjectMeta: metav1.ObjectMeta{Name: w.name, Labels: map[string]string{"made": "by-somebody"}}})
		return err
	}
	remove := func() error { return kube.IgnoreNotFound(configurations.Delete(t.Context(), w.name)) }
	for _, c := range []struct {
		name          string
		before, while func() error
		// wantLabel is the label of the configuration in the end, or empty if the configuration is missing.
		wantLabel string
	}{
		{"changed while it is changed", create, func() error { w.edit(func(v *validating) { v.Labels["made"] = "changed" }); return nil }, "changed"},
		{"deleted while it is changed", create, remove, ""},
		{"replaced while it is changed", create, func() error { return errors.Join(remove(), create()) }, "by-somebody"},
	} {
		if err := errors.Join(remove(), c.before()); err != nil {
			t.Fatal(err)
		}
		var interferences atomic.Int64
		client := w.account.With(func(next wire.Handler) wire.Handler {
			return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
				if r.Verb == wire.VerbPatch && interferences.Add(1) == 1 {
					if err := c.while(); err != nil {
						t.Error(err)
					}
				}
				return next.Do(ctx, r)
			})
		})
		leader := w.newReplica(client, "A", func(c *configpublishing.Config) { c.Target.Namespaces = []string{w.users} }, crateValidator())
		leader.elect()
		leader.run(t)
		if c.wantLabel == "" {
			yaretest.Eventually(t, func() error {
				if log := leader.log.String(); strings.Count(log, "is missing") != 1 {
					return fmt.Errorf("%s: the log is %s", c.name, log)
				}
				return w.checkState("? | ?")
			})
			leader.stop()
			leader.wrote(t, 1)
			continue
		}
		w.soon(c.name, crateEntry+"=A "+scaleEntry+"=A | ?")
		leader.stop()
		if label := w.get().Labels["made"]; label != c.wantLabel {
			t.Errorf("%s: the label is %q", c.name, label)
		}
		leader.wrote(t, 2)
		if log := leader.log.String(); strings.Contains(log, "level=ERROR") {
			t.Errorf("%s: the log is %s", c.name, log)
		}
	}
}

// A platform adds an expression, a label and an annotation each second. There is no write of the program after the first
// seconds, no failed request, and one line in the log. A field that somebody changes is set back, and the log has its path
// and the field manager.
func TestPlatformOnAServer(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	if _, err := kube.Everywhere[validating](w.client).Create(t.Context(), &validating{ObjectMeta: metav1.ObjectMeta{Name: w.name, Labels: map[string]string{"app.kubernetes.io/name": "web"}}}); err != nil {
		t.Fatal(err)
	}
	r := w.newReplica(w.account, "A", func(c *configpublishing.Config) { c.Target.Namespaces = []string{w.users} }, crateValidator())
	r.elect()
	r.run(t)
	w.soon("published", crateEntry+"=A "+scaleEntry+"=A | ?")
	wrote := r.writes.Load()
	for i := range 10 {
		w.edit(func(v *validating) {
			metav1.SetMetaDataLabel(&v.ObjectMeta, "seen", fmt.Sprint(i))
			metav1.SetMetaDataAnnotation(&v.ObjectMeta, "seen", fmt.Sprint(i))
			for j := range v.Webhooks {
				s := v.Webhooks[j].NamespaceSelector
				s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: fmt.Sprintf("platform.example.com/%d", i), Operator: metav1.LabelSelectorOpDoesNotExist,
				})
			}
		})
		time.Sleep(time.Second)
	}
	r.wrote(t, wrote)
	log := r.log.String()
	if strings.Count(log, "level=WARN") != 1 || strings.Contains(log, "level=ERROR") || !strings.Contains(log, "somebody") {
		t.Errorf("the log is %s", log)
	}
	w.edit(func(v *validating) {
		five := int32(5)
		v.Webhooks[0].TimeoutSeconds = &five
	})
	yaretest.Eventually(t, func() error {
		if log := r.log.String(); !strings.Contains(log, ".webhooks["+crateEntry+"].timeoutSeconds of somebody") {
			return fmt.Errorf("the log is %s", log)
		}
		return nil
	})
	if n := len(w.get().Webhooks[0].NamespaceSelector.MatchExpressions); n != 11 {
		t.Errorf("%d expressions are left, want 11", n)
	}
}

// The permissions of Access are for the configurations and the Namespace by their names alone.
func TestAccess(t *testing.T) {
	t.Parallel()
	w := newServerWorld(t)
	r := w.newReplica(w.account, "A", func(c *configpublishing.Config) { c.Name, c.Target.Namespaces = "other."+w.users, []string{w.users} }, crateValidator())
	r.elect()
	r.run(t)
	yaretest.Eventually(t, func() error {
		if log := r.log.String(); strings.Count(log, "is forbidden") < 2 {
			return fmt.Errorf("the log is %s", log)
		}
		return nil
	})
	if err := r.Ready(); err == nil {
		t.Error("a replica without permissions is ready")
	}
	for _, a := range configpublishing.Access("a", "b", "c") {
		for _, verb := range a.Verbs {
			if verb == wire.VerbDelete && a.Resource.Kind == "Namespace" || verb == wire.VerbCreate {
				t.Errorf("%s %s", verb, a.Resource)
			}
		}
	}
}
