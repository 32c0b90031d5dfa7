package operatortest

import (
	"bufio"
	"bytes"
	"encoding/json"
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

// permissions returns what the rules allow.
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
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+o.Resource.Plural+"."+o.Resource.Group)
	yaretest.Eventually(t, func() error { // the server takes its time with a new definition
		_, err := kube.Dynamic(cluster.Client(t), o.Resource, "default").List(t.Context())
		return err
	})
	return &audited{suite: &suite{Operator: o, cluster: cluster, program: program}, log: log}
}

// sent returns what users with names that begin like this have asked for, as the audit log has it. A
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
// OwnerReferencesPermissionEnforcement, with and without streaming lists, and with faults. What the
// operator asks for must be what it prints as its permissions. A permission that it does not ask for
// must be one that the server demands behind another request: without it that request is refused. Only
// a get may be missing.
func (o Operator) TestPermissions(t *testing.T) {
	o.audit(t, func(t *testing.T, a *audited, namespace string) { a.live(t, namespace) },
		func(t *testing.T, a *audited, granted rules, unasked []permission) {
			for _, p := range unasked {
				if p.verb == "get" {
					// A controller gets what its streams leave in doubt, which depends on how quickly they
					// come back after a fault.
					t.Logf("nothing was in doubt that needed this: %s", p)
					continue
				}
				t.Run("without "+p.String(), func(t *testing.T) { a.requireNeed(t, granted, p) })
			}
		})
}

// Audit runs live twice, as TestPermissions does, with an account that has the permissions that the
// program in the current folder prints, and no others. It returns those that nobody asked for, such as
// "get books.example.com".
func Audit(t *testing.T, resource kube.Resource, live func(t *testing.T, cluster *yaretest.Cluster, account *yaretest.ServiceAccount, namespace string)) (unasked []string) {
	t.Helper()
	Operator{Resource: resource}.audit(t,
		func(t *testing.T, a *audited, namespace string) { live(t, a.cluster, a.account, namespace) },
		func(_ *testing.T, _ *audited, _ rules, rest []permission) {
			for _, p := range rest {
				unasked = append(unasked, p.String())
			}
		})
	return unasked
}

// audit runs live on two control planes, and then calls end with the permissions that nobody has asked
// for on either.
func (o Operator) audit(t *testing.T, live func(t *testing.T, a *audited, namespace string), end func(t *testing.T, a *audited, granted rules, unasked []permission)) {
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
			granted := printedRules(t, program, args...)
			a.account = a.cluster.ServiceAccount(t, namespace)
			granted.allow(t, a.account)
			live(t, a, namespace)
			asked := a.sent(t, "system:serviceaccount:"+namespace+":")
			t.Logf("of %d permissions it used %d", len(granted.permissions()), len(asked))
			for p := range asked {
				if !granted.permissions()[p] {
					t.Errorf("it does not declare %s", p)
				}
				delete(unasked, p)
			}
			if mode.isLast {
				end(t, a, granted, slices.SortedFunc(maps.Keys(unasked), func(a, b permission) int { return strings.Compare(a.String(), b.String()) }))
			}
		})
	}
}

// live lets objects be created, changed, healed and deleted, while the operator is restarted and its
// connection breaks.
func (a *audited) live(t *testing.T, namespace string) {
	w := a.worldIn(t, namespace, a.account.Proxy(t))
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
	// repeated.
	for n := range kindsOfWrites {
		name := fmt.Sprintf("fault-%d", n)
		w.proxy.CutAtWrite(n+1, yaretest.AfterWrite)
		w.apply(t, name, first)
		<-w.proxy.Cut()
		yaretest.Eventually(t, func() error {
			if !slices.ContainsFunc(errorLines(w.operator), func(line string) bool { return strings.Contains(line, `"name":"`+name+`"`) }) {
				return fmt.Errorf("the reconcile of %s has not failed", name)
			}
			return nil
		})
		w.proxy.Mend()
		w.waitUntilReady(t, name, first)
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

// requireNeed fails t unless a request of the operator is refused without p.
func (a *audited) requireNeed(t *testing.T, granted rules, p permission) {
	namespace := a.cluster.Namespace(t)
	account := a.cluster.ServiceAccount(t, namespace)
	everywhere := make(rules)
	for _, each := range granted {
		everywhere[""] = append(everywhere[""], each...)
	}
	everywhere.without(p).allow(t, account)
	w := &world{suite: a.suite, namespace: namespace, proxy: account.Proxy(t), client: a.cluster.Client(t).WithFieldManager("user")}
	w.apply(t, "app", first)
	w.start(t)
	var refused yaretest.Request
	yaretest.Eventually(t, func() error {
		for _, r := range w.proxy.Requests() {
			if r.Code == http.StatusForbidden {
				refused = r
				return nil
			}
		}
		return fmt.Errorf("without %s nothing is refused", p)
	})
	w.operator.WaitForLog(t, "forbidden")
	t.Logf("without %s this is refused: %s", p, refused)
	for _, child := range parse(t, w.Children("app", first)) {
		if missing(t.Context(), w.apiOf(t, child), child.GetName()) == nil {
			return
		}
	}
	t.Errorf("without %s all children were made", p)
}
