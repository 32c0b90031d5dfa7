package operatortest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// Operator describes an operator in the current folder, and what it must achieve.
type Operator struct {
	// Resource is the resource of the objects that the operator reconciles.
	Resource kube.Resource
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
	// Finalizer is the finalizer of each object, or "".
	Finalizer string
	// Requeues is true if the operator requeues each object within ten seconds.
	Requeues bool
	// Tampers are changes of the children by others, besides deletions.
	Tampers []Tamper
	// Bad are objects that the schema must refuse.
	Bad []Bad
}

// State is the state of an object that users want.
type State struct {
	Replicas int
	Image    string // empty if the operator has no choice of images
}

// Bad is the spec of an object that the schema must refuse.
type Bad struct {
	Name string
	// Spec is in YAML's flow style, such as {replicas: many}.
	Spec string
	// Field is the field that the schema must refuse.
	Field string
	// Good is a valid spec, equal to the state second.
	Good     string
	Reported Reporting
}

// Reporting is how often an operator reports an object that was stored before the schema refused it.
type Reporting int

// The frequencies of reports.
const (
	// OncePerChange is for a spec that the operator cannot read, and for a spec whose children the
	// server refuses.
	OncePerChange Reporting = iota
	// Never is for a spec that works all the same.
	Never
)

var (
	first  = State{Replicas: 2, Image: "nginx:1.27"}
	second = State{Replicas: 1, Image: "nginx:1.28"}
)

// Test runs all tests of the operator.
func (o Operator) Test(t *testing.T) {
	s := o.setUp(t)
	// t.Parallel would let no more tests run than there are processors, and these mostly wait.
	inParallel(t, 6, []subtest{
		{"definition", func(t *testing.T) { checkDefinition(t, s.program) }},
		{"sample", s.testSample},
		{"life", s.testLife},
		{"tampering", s.testTampering},
		{"crashes", s.testCrashes},
		{"deleted while down", s.testDeletedWhileDown},
		{"made anew", s.testMadeAnew},
		{"few rights", s.testFewRights},
		{"at rest", s.testAtRest},
		{"bad objects", s.testBadObjects},
	})
	// This test runs by itself, because it leaves no processor time for the others.
	t.Run("many", s.testMany)
}

// suite is an operator with its program and its cluster.
type suite struct {
	Operator
	cluster *yaretest.Cluster
	program string
	// account has the permissions that the program prints, and no others, in all namespaces.
	account *yaretest.ServiceAccount
	// bad is the namespace of the objects that were stored before the schema refused them.
	bad string
}

func (o Operator) setUp(t *testing.T) *suite {
	t.Helper()
	s := &suite{Operator: o, cluster: yaretest.Start(t), program: yaretest.Build(t, ".")}
	s.bad = s.cluster.Namespace(t)
	s.storeBad(t)
	home := s.cluster.Namespace(t)
	s.account = s.cluster.ServiceAccount(t, home)
	printedRules(t, s.program).allow(t, s.account)
	return s
}

// subtest is a test with a name.
type subtest struct {
	name string
	run  func(*testing.T)
}

// inParallel runs tests, a number of them at a time, and returns when all have ended.
func inParallel(t *testing.T, atOnce int, tests []subtest) {
	t.Helper()
	running := make(chan struct{}, atOnce)
	done := make(chan struct{})
	for _, test := range tests {
		go func() {
			defer func() { done <- struct{}{} }()
			running <- struct{}{}
			defer func() { <-running }()
			t.Run(test.name, test.run)
		}()
	}
	for range tests {
		<-done
	}
}
