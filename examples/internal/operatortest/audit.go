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
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

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
	Operator
	cluster *yaretest.Cluster
	program string
	log     string
	// granted are the permissions of the operator.
	granted rules
}

// newAudited starts a control plane, and defines the resource of the operator.
func newAudited(t *testing.T, o Operator, program string, args ...string) *audited {
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
	return &audited{Operator: o, cluster: cluster, program: program, log: log}
}

// sent returns the permissions that users have asked for, by the audit log. Their names begin with the text
// users. A refusal fails t.
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

// Audit makes the checks of [Operator.TestPermissions] for the program in the current folder. live lets
// objects live through everything. begin starts the program, and returns once the program has made the
// requests of the usual beginning of an object, or has been refused. If begin is nil, the program must
// ask for all its permissions in live.
func Audit(t *testing.T, resource wire.Resource, live, begin func(t *testing.T, cluster *yaretest.Cluster, proxy *yaretest.Proxy, namespace string)) {
	t.Helper()
	sceneOf := func(act func(*testing.T, *yaretest.Cluster, *yaretest.Proxy, string)) scene {
		if act == nil {
			return nil
		}
		return func(a *audited, t *testing.T, proxy *yaretest.Proxy, namespace string) {
			act(t, a.cluster, proxy, namespace)
		}
	}
	audit(t, Operator{Resource: resource}, sceneOf(live), sceneOf(begin))
}

// scene is a part of the life of objects in a namespace. The program reaches the server through the
// proxy.
type scene func(a *audited, t *testing.T, proxy *yaretest.Proxy, namespace string)

// audit runs live on two control planes. If the program has asked for a permission on neither of them, a
// request of the program must be refused without it after begin.
func audit(t *testing.T, o Operator, live, begin scene) {
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
			a := newAudited(t, o, program, mode.flag)
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

// live lets objects be created, changed, healed and deleted, while the operator is restarted and its
// connection breaks.
func (a *audited) live(t *testing.T, proxy *yaretest.Proxy, namespace string) {
	w := newWorld(t, a.Operator, a.cluster, a.program, namespace, proxy)
	w.requireNoRefusal(t)
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
		w.proxy.CutAfterWrite(n%kindsOfWrites + 1)
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
	w.running.Kill()
	w.delete(t, "fault-0")
	w.start(t)
	w.waitUntilGone(t, "fault-0")
	w.waitUntilReady(t, "fault-1", first)
	w.delete(t, "app")
	w.waitUntilGone(t, "app")
	w.stop(t)
}

// kindsOf returns the number of writes that differ in more than their outcome.
func kindsOf(writes []yaretest.Request) int {
	kinds := make(map[string]bool)
	for _, w := range writes {
		kinds[fmt.Sprint(w.Verb, w.Resource, w.Subresource)] = true
	}
	return len(kinds)
}

// hasGot reports whether the server has answered a get of each kind that the operator may get. Kinds that are
// never in doubt do not count.
func (a *audited) hasGot(requests []yaretest.Request) bool {
	for p := range a.granted.permissions() {
		resource := strings.TrimPrefix(p.String(), "get ")
		if p.verb == "get" && !a.granted.isNeverInDoubt(p) && !slices.ContainsFunc(requests, func(r yaretest.Request) bool {
			return r.Verb == wire.VerbGet && r.Resource == resource && r.Code != 0
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
	w := newWorld(t, a.Operator, a.cluster, a.program, namespace, proxy)
	w.apply(t, "app", first)
	w.start(t)
	w.running.WaitForLog(t, "forbidden")
	for _, child := range parse(t, w.Children("app", first)) {
		if missing(t.Context(), w.apiOf(t, child), child.GetName()) == nil {
			return
		}
	}
	t.Error("all children were made")
}
