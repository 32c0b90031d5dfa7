package operatortest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// rules are what an operator may do, by namespaces. The namespace "" stands for the whole cluster.
type rules map[string][]rbacv1.PolicyRule

// printedRules returns the rules that a program prints with its subcommand permissions.
func printedRules(t *testing.T, program string, args ...string) rules {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"permissions"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("permissions: %v\n%s", err, stderr.Bytes())
	}
	printed := make(rules)
	for document := range strings.SplitSeq(string(out), "---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(role.Rules) > 0 {
			printed[role.Namespace] = append(printed[role.Namespace], role.Rules...)
		}
	}
	return printed
}

// allow gives an account these rules.
func (r rules) allow(t *testing.T, account *yaretest.ServiceAccount) {
	t.Helper()
	for _, namespace := range slices.Sorted(maps.Keys(r)) {
		account.Allow(t, namespace, r[namespace]...)
	}
}

// permission is one verb on one resource, such as: patch webapps.example.com/status.
type permission struct{ verb, group, resource string }

func (p permission) String() string {
	plural, subresource, isSub := strings.Cut(p.resource, "/")
	if p.group != "" {
		plural += "." + p.group
	}
	if isSub {
		plural += "/" + subresource
	}
	return p.verb + " " + plural
}

// permissions returns the permissions that the rules grant.
func (r rules) permissions() map[permission]bool {
	all := make(map[permission]bool)
	for _, granted := range r {
		for _, rule := range granted {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all[permission{verb, group, resource}] = true
					}
				}
			}
		}
	}
	return all
}

// without returns the rules that do not allow p.
func (r rules) without(p permission) rules {
	rest := make(rules)
	for namespace, granted := range r {
		for _, rule := range granted {
			for _, resource := range rule.Resources {
				narrow := rule
				narrow.Resources = []string{resource}
				if slices.Contains(rule.APIGroups, p.group) && resource == p.resource {
					narrow.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == p.verb })
				}
				if len(narrow.Verbs) > 0 {
					rest[namespace] = append(rest[namespace], narrow)
				}
			}
		}
	}
	return rest
}

// auditPolicy records who asks for what.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// audited is a control plane that checks permissions as the strictest clusters do, and records all
// requests.
type audited struct {
	*suite
	log string
	// granted are the permissions of the operator.
	granted rules
}

// newAudited starts a control plane, and defines the resource of the operator.
func (o Operator) newAudited(t *testing.T, program string, args ...string) *audited {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	cluster := yaretest.New(t, yaretest.APIServerArgs(append([]string{
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement", "--audit-policy-file=" + policy, "--audit-log-path=" + log,
	}, args...)...))
	cluster.Kubectl(t, crd(t, program), "apply", "-f", "-")
	yaretest.Eventually(t, func() error { // the server takes its time with a new definition
		_, err := kube.Dynamic(cluster.Client(t), o.Resource, "default").List(t.Context())
		return err
	})
	return &audited{suite: &suite{Operator: o, cluster: cluster, program: program}, log: log}
}

// sent returns the permissions that users whose names begin with this text have asked for, by the audit log. A
// refusal fails t.
func (a *audited) sent(t *testing.T, users string) map[permission]bool {
	t.Helper()
	text, err := os.ReadFile(a.log)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[permission]bool)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct {
			Verb           string                    `json:"verb"`
			RequestURI     string                    `json:"requestURI"`
			User           struct{ Username string } `json:"user"`
			ResponseStatus struct{ Code int }        `json:"responseStatus"`
			ObjectRef      *struct {
				Resource, Subresource, APIGroup string
			} `json:"objectRef"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		if !strings.HasPrefix(event.User.Username, users) || event.ObjectRef == nil {
			continue
		}
		if event.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("it was refused: %s %s", event.Verb, event.RequestURI)
		}
		p := permission{event.Verb, event.ObjectRef.APIGroup, event.ObjectRef.Resource}
		if event.ObjectRef.Subresource != "" {
			p.resource += "/" + event.ObjectRef.Subresource
		}
		all[p] = true
	}
	return all
}

// OnRequest skips t unless the environment variable YARE_ALL_PERMISSIONS is set. The proof of the
// permissions takes a minute, and one example is enough for each change of yare.
func OnRequest(t *testing.T) {
	t.Helper()
	if os.Getenv("YARE_ALL_PERMISSIONS") == "" {
		t.Skip("set YARE_ALL_PERMISSIONS to prove the permissions of this example too")
	}
}

// TestPermissions lets the objects of the operator live through everything, on control planes with
// OwnerReferencesPermissionEnforcement, with and without streaming lists, and with faults. The permissions
// that the operator asks for must be the permissions that it prints. A permission that it does not ask for
// must be one that the server demands behind another request, which is refused without the permission.
func (o Operator) TestPermissions(t *testing.T) {
	o.audit(t, (*audited).live, (*audited).requireRefusal)
}

// Audit makes the checks of [Operator.TestPermissions] for the program in the current folder. live lets
// objects live through everything. begin starts the program, and returns once the program has made the
// requests of the usual beginning of an object, or has been refused. If begin is nil, the program must
// ask for all its permissions in live.
func Audit(t *testing.T, resource kube.Resource, live, begin func(t *testing.T, cluster *yaretest.Cluster, proxy *yaretest.Proxy, namespace string)) {
	t.Helper()
	sceneOf := func(act func(*testing.T, *yaretest.Cluster, *yaretest.Proxy, string)) scene {
		if act == nil {
			return nil
		}
		return func(a *audited, t *testing.T, proxy *yaretest.Proxy, namespace string) {
			act(t, a.cluster, proxy, namespace)
		}
	}
	Operator{Resource: resource}.audit(t, sceneOf(live), sceneOf(begin))
}

// scene is a part of the life of objects in a namespace. The program reaches the server through the
// proxy.
type scene func(a *audited, t *testing.T, proxy *yaretest.Proxy, namespace string)

// audit runs live on two control planes. A permission that the program has asked for on neither must be
// one without which a request of the program is refused after begin.
func (o Operator) audit(t *testing.T, live, begin scene) {
	t.Helper()
	program := yaretest.Build(t, ".")
	unasked := printedRules(t, program).permissions()
	for _, mode := range []struct {
		name, flag       string
		isNarrow, isLast bool
	}{
		{"streaming lists", "--feature-gates=WatchList=true", false, false},
		{"pages, in one namespace", "--feature-gates=WatchList=false", true, true},
	} {
		t.Run(mode.name, func(t *testing.T) {
			a := o.newAudited(t, program, mode.flag)
			namespace := a.cluster.Namespace(t)
			var args []string
			if mode.isNarrow {
				args = []string{"--watch-namespace", namespace}
			}
			a.granted = printedRules(t, program, args...)
			account := a.cluster.ServiceAccount(t, namespace)
			a.granted.allow(t, account)
			live(a, t, account.Proxy(t), namespace)
			asked := a.sent(t, "system:serviceaccount:"+namespace+":")
			t.Logf("of %d permissions it used %d", len(a.granted.permissions()), len(asked))
			for p := range asked {
				if !a.granted.permissions()[p] {
					t.Errorf("it does not declare %s", p)
				}
				delete(unasked, p)
			}
			if !mode.isLast {
				return
			}
			for _, p := range slices.SortedFunc(maps.Keys(unasked), func(a, b permission) int { return strings.Compare(a.String(), b.String()) }) {
				switch {
				case a.granted.isNeverInDoubt(p):
					t.Logf("only a restored backup, or its author, needs %s", p)
				case begin == nil:
					t.Errorf("it declares and does not ask for %s", p)
				default:
					t.Run("without "+p.String(), func(t *testing.T) { a.requireNeed(t, p, begin) })
				}
			}
		})
	}
}

// isNeverInDoubt reports whether p is the get of objects that the program does not write. So no write can
// leave them in doubt. The program gets one only while a stream is still of the past that the
// restoration of a backup has undone: see TestViewDoesNotUseAStoreOfThePast in package cache.
func (r rules) isNeverInDoubt(p permission) bool {
	if p.verb != string(kube.VerbGet) {
		return false
	}
	for other := range r.permissions() {
		resource, subresource, _ := strings.Cut(other.resource, "/")
		if other.group == p.group && resource == p.resource && (subresource == "" || subresource == "status") && kube.Verb(other.verb).IsWrite() {
			return false
		}
	}
	return true
}

// live lets objects be created, changed, healed and deleted, while the operator is restarted and its
// connection breaks.
func (a *audited) live(t *testing.T, proxy *yaretest.Proxy, namespace string) {
	w := a.worldIn(t, namespace, proxy)
	w.apply(t, "app", first)
	w.start(t)
	w.waitUntilReady(t, "app", first)
	kindsOfWrites := kindsOf(w.proxy.Writes())
	w.apply(t, "app", second)
	w.waitUntilReady(t, "app", second)
	for _, child := range parse(t, a.Children("app", second)) {
		if err := w.apiOf(t, child).Delete(t.Context(), child.GetName()); err != nil {
			t.Fatal(err)
		}
		w.waitUntilReady(t, "app", second)
	}
	// The fate of each of the first writes for an object stays unknown, until requests are no longer
	// repeated. Therefore the operator gets the objects that it wrote. A write for another object may come between.
	for n := 0; n < kindsOfWrites || n < 5*kindsOfWrites && !a.hasGot(w.proxy.Requests()); n++ {
		name := fmt.Sprintf("fault-%d", n)
		before, _ := w.failures(t)
		w.proxy.CutAtWrite(n%kindsOfWrites+1, yaretest.AfterWrite)
		w.apply(t, name, first)
		<-w.proxy.Cut()
		yaretest.Eventually(t, func() error {
			if now, _ := w.failures(t); now == before {
				return errors.New("no reconcile has failed")
			}
			return nil
		})
		w.proxy.Mend()
		w.waitUntilReady(t, name, first)
		yaretest.Eventually(t, func() error {
			if _, failing := w.failures(t); len(failing) > 0 {
				return fmt.Errorf("the last reconciles of %q have failed", failing)
			}
			return nil
		})
	}
	w.operator.Kill()
	w.delete(t, "fault-0")
	w.start(t)
	w.waitUntilGone(t, "fault-0")
	w.waitUntilReady(t, "fault-1", first)
	w.delete(t, "app")
	w.waitUntilGone(t, "app")
	w.stop(t)
}

// failures returns how many reconciles have failed, and the names of the objects whose last reconcile
// has failed.
func (w *world) failures(t *testing.T) (count int, failing []string) {
	t.Helper()
	last := make(map[string]bool)
	for _, text := range w.operator.Log() {
		var line struct{ Msg, Name string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		switch line.Msg {
		case "reconcile failed":
			count++
			last[line.Name] = true
		case "reconciled":
			delete(last, line.Name)
		}
	}
	return count, slices.Sorted(maps.Keys(last))
}

// hasGot reports whether the server has answered a get of each kind that the operator may get, apart
// from the kinds that are never in doubt.
func (a *audited) hasGot(requests []yaretest.Request) bool {
	for p := range a.granted.permissions() {
		resource := strings.TrimPrefix(p.String(), "get ")
		if p.verb == "get" && !a.granted.isNeverInDoubt(p) && !slices.ContainsFunc(requests, func(r yaretest.Request) bool {
			return r.Verb == kube.VerbGet && r.Resource == resource && r.Code != 0
		}) {
			return false
		}
	}
	return true
}

// requireNeed fails t unless a request of the program is refused without p.
func (a *audited) requireNeed(t *testing.T, p permission, begin scene) {
	namespace := a.cluster.Namespace(t)
	account := a.cluster.ServiceAccount(t, namespace)
	everywhere := make(rules)
	for _, each := range a.granted {
		everywhere[""] = append(everywhere[""], each...)
	}
	everywhere.without(p).allow(t, account)
	proxy := account.Proxy(t)
	begin(a, t, proxy, namespace)
	yaretest.Eventually(t, func() error {
		for _, r := range proxy.Requests() {
			if r.Code == http.StatusForbidden {
				t.Logf("without %s this is refused: %s", p, r)
				return nil
			}
		}
		return fmt.Errorf("without %s nothing is refused", p)
	})
}

// requireRefusal creates an object, and fails t unless the operator reports a refusal and a child is
// missing.
func (a *audited) requireRefusal(t *testing.T, proxy *yaretest.Proxy, namespace string) {
	w := &world{suite: a.suite, namespace: namespace, proxy: proxy, client: a.cluster.Client(t).WithFieldManager("user")}
	w.apply(t, "app", first)
	w.start(t)
	w.operator.WaitForLog(t, "forbidden")
	for _, child := range parse(t, w.Children("app", first)) {
		if missing(t.Context(), w.apiOf(t, child), child.GetName()) == nil {
			return
		}
	}
	t.Error("all children were made")
}
