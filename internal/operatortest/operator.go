package operatortest

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// Operator is an operator in the current folder, and what it must bring about.
type Operator struct {
	// Resource is what it reconciles.
	Resource kube.Resource
	// Sample is the name of the object in sample.yaml, and SampleState what that says.
	Sample      string
	SampleState State
	// Object is an object in some state, as YAML.
	Object func(name string, s State) string
	// Children are what there must be for it, as YAML documents: every value in them must
	// be found in the cluster, and lists must be of the same length.
	Children func(name string, s State) string
	// Ready is an error while the object does not say of itself that it is ready; nil if
	// it never says so.
	Ready func(object *unstructured.Unstructured, s State) error
	// Rules are all that the operator may do.
	Rules []rbacv1.PolicyRule
	// Finalizer is the one that each object carries, if there is one.
	Finalizer string
	// Requeues is true if it looks again by itself within ten seconds.
	Requeues bool
	// Tampers are what somebody may do to the children, besides deleting them.
	Tampers []Tamper
	// Bad are objects that make no sense.
	Bad []Bad
}

// State is what users ask an operator for.
type State struct {
	Replicas int
	Image    string // empty if the operator has no choice of images
}

// Bad is the spec of an object that makes no sense.
type Bad struct {
	Name string
	// Spec is in YAML's flow style, such as {replicas: many}.
	Spec string
	// Field is what the schema finds fault with.
	Field string
	// Good is a spec that is right, and the same as second.
	Good string
	Told Told
}

// Told is how often an operator tells of a bad object that got past the schema.
type Told int

// The ways.
const (
	// OncePerChange is for what the operator cannot read, and for what the server refuses.
	OncePerChange Told = iota
	// Never is for what makes some sense all the same.
	Never
)

var (
	first  = State{Replicas: 2, Image: "nginx:1.27"}
	second = State{Replicas: 1, Image: "nginx:1.28"}
)

// Test runs all tests of the operator.
func (o Operator) Test(t *testing.T) {
	s := o.setUp(t)
	// Not t.Parallel, which would let no more of them run than there are processors: what
	// they do most is wait.
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
	// By itself, because it leaves no time for the others.
	t.Run("many", s.testMany)
}

// suite is an operator with its program and its cluster.
type suite struct {
	Operator
	cluster *yaretest.Cluster
	program string
	// account has the operator's rights, everywhere.
	account *yaretest.ServiceAccount
	// bad is where bad objects were stored before there was a schema against it.
	bad string
}

func (o Operator) setUp(t *testing.T) *suite {
	t.Helper()
	s := &suite{Operator: o, cluster: yaretest.Start(t), program: yaretest.Build(t, ".")}
	s.bad = s.cluster.Namespace(t)
	s.storeBad(t)
	home := s.cluster.Namespace(t)
	s.account = s.cluster.ServiceAccount(t, home)
	s.account.Allow(t, "", o.Rules...)
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
