package yaretest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube/wire"
)

// PermissionProof proves that a program needs the permissions that its command permissions prints, and no others.
//
//	yaretest.PermissionProof{Program: yaretest.Build(t, "."), Use: use}.Run(t)
//
// The program runs on control planes of its own, with the printed permissions alone. The audit log of the API server
// shows what the program has asked for. The control planes have the admission plugin
// OwnerReferencesPermissionEnforcement, as the strictest clusters do.
//
// A permission to get the objects that the program may list counts as asked for, because the list shows them too. The
// program needs it only after a failure: it reads an object again if the answer to a write was lost.
type PermissionProof struct {
	// Program is the path of the program: see [Build].
	Program string
	// Args are the flags of the program that change its permissions, such as --leader-elect.
	Args []string
	// Use starts the program, and makes it do everything that it ever does: with objects that are created, changed and
	// deleted. It is called twice: for a program that watches all namespaces, on a server with streaming lists, and for
	// one that watches a single namespace, on a server that lists in pages.
	Use func(t *testing.T, run *PermissionRun)
	// Begin starts the program and creates an object. It is for permissions that no request shows. For example, an apply
	// is a patch, and an apply that makes its object needs the permission to create too. Begin is called once for each
	// permission that the program has not asked for in Use. The program then lacks this permission, and the server must
	// refuse a request of the program. Begin must not wait for what the refusal prevents. If Begin is nil, the program
	// must ask for each permission in Use.
	Begin func(t *testing.T, run *PermissionRun)
	// EachGet is true if the program must ask for each get, too. Use then cuts the connection after writes: see
	// [Proxy.CutAfterWrite].
	EachGet bool
}

// PermissionRun is a namespace of a control plane in which a [PermissionProof] tries a program.
type PermissionRun struct {
	// Cluster is the control plane. Its clients may do everything.
	Cluster   *Cluster
	Namespace string
	// Proxy is how the program reaches the server, by [Proxy.Kubeconfig].
	Proxy *Proxy
	// Program and Args are what [Run] needs to start the program.
	Program string
	Args    []string
	// Granted are the rules of all roles of the program.
	Granted []rbacv1.PolicyRule
}

// Run makes the proof. It fails t if the program asks for a permission that it does not print, if the server refuses a
// request, and if the program prints a permission that it does not need, or a wildcard.
func (p PermissionProof) Run(t *testing.T) {
	t.Helper()
	unasked := printedRules(t, p.Program, p.Args...).permissions()
	for wildcard := range unasked {
		if wildcard.isWildcard() {
			t.Errorf("it prints a wildcard, of which nobody can prove that the program needs all of it: %s", wildcard)
			delete(unasked, wildcard)
		}
	}
	t.Run("streaming lists", func(t *testing.T) {
		newAuditedCluster(t, p, "--feature-gates=WatchList=true").tryUse(t, p, unasked, false)
	})
	t.Run("pages, in one namespace", func(t *testing.T) {
		audited := newAuditedCluster(t, p, "--feature-gates=WatchList=false")
		granted := audited.tryUse(t, p, unasked, true)
		for _, each := range slices.SortedFunc(maps.Keys(unasked),
			func(a, b permission) int { return strings.Compare(a.String(), b.String()) }) {
			list := permission{string(wire.VerbList), each.group, each.resource}
			switch {
			case granted.isGetOfUnwritten(each):
				t.Logf("only a restored backup, or its author, needs %s", each)
			case !p.EachGet && each.verb == string(wire.VerbGet) && granted.permissions()[list]:
				t.Logf("%s allows what %s allows", each, list)
			case p.Begin == nil:
				t.Errorf("it declares and does not ask for %s", each)
			default:
				t.Run("without "+each.String(), func(t *testing.T) { audited.requireNeed(t, p, each) })
			}
		}
	})
}

// auditPolicy records who asks for what.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// auditedCluster is a control plane that checks permissions as the strictest clusters do, and records all requests.
type auditedCluster struct {
	cluster *Cluster
	// log is the path of the audit log.
	log string
}

// newAuditedCluster starts a control plane, and defines the kinds of the program of p. args are for the API server.
func newAuditedCluster(t *testing.T, p PermissionProof, args ...string) *auditedCluster {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	a := &auditedCluster{log: log, cluster: New(t, APIServerArgs(append([]string{
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement", "--audit-policy-file=" + policy,
		"--audit-log-path=" + log,
	}, args...)...))}
	definitions, err := outputOf(t.Context(), p.Program, "crd")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(definitions, "---\n") {
		a.define(t, document)
	}
	return a
}

// define applies a definition, and waits until the server serves its kinds. A document without a definition is left
// out.
func (a *auditedCluster) define(t *testing.T, document string) {
	t.Helper()
	var definition struct {
		Spec struct {
			Group string
			Names struct{ Plural string }
			// Versions are those of the kind.
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	if err := yaml.Unmarshal([]byte(document), &definition); err != nil {
		t.Fatalf("%v in:\n%s", err, document)
	}
	spec := definition.Spec
	if spec.Group == "" {
		return
	}
	a.cluster.Kubectl(t, document, "apply", "-f", "-")
	client := a.cluster.Client(t)
	for _, version := range spec.Versions {
		r := wire.Resource{Plural: spec.Names.Plural}
		r.Group, r.Version = spec.Group, version.Name
		if !version.Served {
			continue
		}
		Eventually(t, func() error { // the server takes its time with a new definition
			_, err := client.Do(t.Context(), &wire.Request{Verb: wire.VerbList, Resource: r})
			return err
		})
	}
}

// newRun returns a run of the program of p, in a new namespace, with an account that has no rights yet.
func (a *auditedCluster) newRun(
	t *testing.T, p PermissionProof, isNarrow bool,
) (run *PermissionRun, account *ServiceAccount, granted permissionRules) {
	t.Helper()
	namespace := a.cluster.Namespace(t)
	args := slices.Clone(p.Args)
	if isNarrow {
		args = append(args, "--watch-namespace", namespace)
	}
	granted = printedRules(t, p.Program, append([]string{"--namespace", namespace}, args...)...)
	account = a.cluster.ServiceAccount(t, namespace)
	return &PermissionRun{
		Cluster: a.cluster, Namespace: namespace, Proxy: account.Proxy(t), Program: p.Program, Args: args,
		Granted: granted.all(),
	}, account, granted
}

// tryUse lets the program of p do everything with the permissions that it prints, which tryUse returns. It deletes from
// unasked what the program asks for.
func (a *auditedCluster) tryUse(
	t *testing.T, p PermissionProof, unasked map[permission]bool, isNarrow bool,
) permissionRules {
	t.Helper()
	run, account, granted := a.newRun(t, p, isNarrow)
	granted.allow(t, account)
	p.Use(t, run)
	asked := a.asked(t, "system:serviceaccount:"+run.Namespace+":")
	declared := granted.permissions()
	t.Logf("the program has used %d of %d permissions", len(asked), len(declared))
	for each := range asked {
		if !declared[each] {
			t.Errorf("it does not declare %s", each)
		}
		delete(unasked, each)
	}
	return granted
}

// asked returns the permissions that users have asked for, by the audit log. Their names begin with the text
// users. A refusal fails t.
func (a *auditedCluster) asked(t *testing.T, users string) map[permission]bool {
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
			t.Errorf("the server has refused a request of the program: %s %s", event.Verb, event.RequestURI)
		}
		each := permission{event.Verb, event.ObjectRef.APIGroup, event.ObjectRef.Resource}
		if event.ObjectRef.Subresource != "" {
			each.resource += "/" + event.ObjectRef.Subresource
		}
		all[each] = true
	}
	return all
}

// requireNeed fails t unless a request of the program is refused without a permission.
func (a *auditedCluster) requireNeed(t *testing.T, p PermissionProof, without permission) {
	t.Helper()
	// The rules of another run could have names of its objects, so that this program needed others too.
	run, account, granted := a.newRun(t, p, true)
	granted.everywhereWithout(without).allow(t, account)
	p.Begin(t, run)
	Eventually(t, func() error {
		for _, r := range run.Proxy.Requests() {
			if r.Code == http.StatusForbidden {
				t.Logf("without %s this is refused: %s", without, r)
				return nil
			}
		}
		return fmt.Errorf("without %s nothing is refused, so the program does not need it", without)
	})
}
