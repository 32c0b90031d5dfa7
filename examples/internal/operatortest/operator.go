// Package operatortest holds the tests that the examples share. It runs each example as the program that users run, against a
// real control plane. An [Operator] reconciles objects, and is explored with crashes and with changes by others. A [Watcher] prints
// what happens to the objects of a kind.
package operatortest

import (
	"os"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// Operator describes an operator in the current folder, and what it must achieve.
type Operator struct {
	// Resource is the resource of the objects that the operator reconciles.
	Resource wire.Resource
	// Sample is the name of the object in sample.yaml. SampleState is its state.
	Sample      string
	SampleState State
	// Object returns an object in a state, as YAML.
	Object func(name string, s State) string
	// Children returns the children that must exist for an object, as YAML documents. The cluster
	// must have every value in them, and lists of the same length.
	Children func(name string, s State) string
	// Ready returns an error while the object's status does not show that the object is ready. It is nil if
	// the status never shows that.
	Ready func(object *unstructured.Unstructured, s State) error
	// Requeues is true if the operator requeues each object within ten seconds.
	Requeues bool
	// Bad are objects that the schema must refuse.
	Bad []BadObject
}

// State is the state of an object that users want.
type State struct {
	Replicas int
	Image    string // empty if the operator has no choice of images
}

// BadObject is an object that the schema must refuse.
type BadObject struct {
	Name string
	// Spec is in YAML's flow style, such as {replicas: many}.
	Spec string
	// Field is the field that the schema must refuse.
	Field string
	// Good is a valid spec, equal to secondState.
	Good     string
	Reported Reporting
}

// Reporting is how often an operator reports an object that was stored before the schema refused it.
type Reporting int

// The frequencies of reports.
const (
	// OncePerChange is for a spec that the operator cannot read. It is also for a spec whose children the
	// server refuses.
	OncePerChange Reporting = iota
	// Never is for a spec that works all the same.
	Never
)

var definitionResource = wire.Resource{
	GroupVersionKind: schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	},
	Plural: "customresourcedefinitions", ClusterScoped: true,
}

var (
	firstState  = State{Replicas: 2, Image: "nginx:1.27"}
	secondState = State{Replicas: 1, Image: "nginx:1.28"}
)

// Test runs all tests of the operator. What faults, crashes and other people do to it is explored.
func (o Operator) Test(t *testing.T) {
	cluster, program := yaretest.Shared(t), yaretest.Build(t, ".")
	bad := newBadObjects(t, o, cluster, program)
	t.Run("explored", func(t *testing.T) {
		t.Parallel()
		// All kinds of faults take three times as long.
		settings := explore.Settings{Only: []string{"crash", "foreign"}}
		if o.SampleState.Image != "" {
			settings.Values = map[string][]any{"spec.image": {secondState.Image}}
		}
		explore.Run(t, explore.Binary{Path: "."}, settings)
	})
	for name, test := range map[string]func(*testing.T){
		"definition":  func(t *testing.T) { checkDefinition(t, program) },
		"changes":     func(t *testing.T) { o.testChanges(t, cluster, program) },
		"at rest":     func(t *testing.T) { o.testAtRest(t, cluster, program) },
		"bad objects": bad.test,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// TestPermissions proves that the operator needs each permission that it prints, also during faults: see [ProvePermissions].
func (o Operator) TestPermissions(t *testing.T) {
	ProvePermissions(t, func(t *testing.T, run *yaretest.PermissionRun) { usePermissions(t, o, run) },
		func(t *testing.T, run *yaretest.PermissionRun) { beginPermissions(t, o, run) })
}

// testChanges checks that the children follow when an object is created, changed and deleted. The sample works unchanged. The operator
// has the permissions that it prints, in one namespace, and no others.
func (o Operator) testChanges(t *testing.T, cluster *yaretest.Cluster, program string) {
	namespace := cluster.Namespace(t)
	account := cluster.ServiceAccount(t, namespace)
	printed := account.AllowPrinted(t, program, "--watch-namespace", namespace)
	if _, err := kube.Dynamic(account.Client(t), definitionResource, "").List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("it may see CustomResourceDefinitions: %v", err)
	}
	r := newOperatorRun(t, o, cluster, program, namespace, account.Proxy(t))
	r.requireNoRefusal(t)
	r.start(t)
	for _, state := range []State{
		firstState,
		{Replicas: 3, Image: secondState.Image},
		{Replicas: 0, Image: secondState.Image},
		secondState,
	} {
		r.apply(t, "app", state)
		r.waitUntilReady(t, "app", state)
	}
	r.proxy.RequireIdle(t, 0, r.process) // the write of a reconcile that is under way would end with NotFound
	r.delete(t, "app")
	r.waitUntilGone(t, "app")
	sample, err := os.ReadFile("sample.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r.applyText(t, string(sample))
	r.waitUntilReady(t, o.Sample, o.SampleState)
	r.stop(t)
	// Without the operator the children stay.
	r.waitUntilReady(t, o.Sample, o.SampleState)
	r.requireNoErrors(t)
	checkUsed(t, printed, r.proxy.Requests())
}

// testAtRest checks that the operator sends no request when the cluster is as it should be, and that it writes nothing after a
// restart.
func (o Operator) testAtRest(t *testing.T, cluster *yaretest.Cluster, program string) {
	r := newOperatorRun(t, o, cluster, program, cluster.Namespace(t), cluster.Proxy(t))
	r.apply(t, "app", firstState)
	r.start(t)
	r.waitUntilReady(t, "app", firstState)
	r.proxy.RequireIdle(t, 10*time.Second, r.process)
	if o.Requeues {
		r.process.WaitForLog(t, `"cause":"requeue"`) // which sent no request
	}
	r.stop(t)
	before := len(r.proxy.Writes())
	r.start(t)
	r.process.WaitForLog(t, `"wrote":`)
	r.proxy.RequireIdle(t, 0)
	r.stop(t)
	again := slices.DeleteFunc(r.proxy.Writes()[before:], func(w yaretest.Request) bool {
		return w.Resource == "selfsubjectreviews.authentication.k8s.io" // it stores nothing
	})
	if len(again) > 0 {
		t.Errorf("started again, with nothing to do, it wrote %v", again)
	}
	r.requireNoErrors(t)
}
