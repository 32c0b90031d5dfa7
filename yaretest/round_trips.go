package yaretest

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
)

const (
	// roundTripObjects is the number of random objects of each version.
	roundTripObjects = 1000
	// roundTripSeed makes the objects of each run the same.
	roundTripSeed = 1
	// shownProblems is how many problems of a kind are printed. No two of them differ in the object alone.
	shownProblems = 5
	// acceptedSamples is how many samples of a pair of versions the API server has to accept.
	acceptedSamples = 3
)

// roundTripChecker is a part with a converter. The parts of conversion.Between implement it.
type roundTripChecker interface {
	CheckRoundTrips(parts []operator.Part, seed uint64, count int,
		report func(kind string, problems []string, kept map[string][]string),
		sample func(from, to wire.Resource, object, converted []byte) error,
	) error
}

// RoundTrips checks the functions of conversion.Between among parts. It makes 1,000 objects of each version from its
// schema, and objects of which most fields are missing, null or empty. They are the same in each run. It fails t in
// these cases:
//
//   - an object that returns from another version to its original version is not what it was
//   - an edit of one field in another version changes more in the original version than the function makes of it
//   - an object that goes to another version, back and there again is not the same there
//   - the result of a function does not fit the schema of its version
//   - a function panics
//   - the API server accepts an object in a version that is served, and refuses what a function makes of it
//
// The last case is tried for a few objects by dry run. So the test defines the kinds before. A rule in CEL is checked
// in this case alone.
//
// RoundTrips logs the fields that only an annotation keeps in another version. It warns of fields whose names look like
// credentials, because many people can see annotations.
//
//	yaretest.RoundTrips(t, cluster, parts()...)
func RoundTrips(t testing.TB, cluster *Cluster, parts ...operator.Part) {
	t.Helper()
	if _, err := controllersOf(parts); err != nil {
		t.Fatal(err)
	}
	checker := roundTripCheckerOf(parts)
	if checker == nil {
		t.Fatal("no part converts objects: give RoundTrips the parts of conversion.Between")
	}
	c := &roundTrips{t: t, client: cluster.Client(t), cluster: cluster, pairs: make(map[string]*samplePair)}
	err := checker.CheckRoundTrips(parts, roundTripSeed, roundTripObjects, c.report, c.sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.pairs)) {
		if p := c.pairs[name]; p.accepted == 0 {
			t.Logf("%s: the API server accepts none of the objects, so none of them was tried in the other version: %v",
				name, p.refusal)
		}
	}
}

// roundTripCheckerOf returns the first part with a converter, or nil.
func roundTripCheckerOf(parts []operator.Part) roundTripChecker {
	for _, part := range feature.PartsWithin(parts) {
		if checker, isChecker := part.(roundTripChecker); isChecker {
			return checker
		}
	}
	return nil
}

// roundTrips is a call of [RoundTrips].
type roundTrips struct {
	t       testing.TB
	client  *kube.Client
	cluster *Cluster
	// namespace is the namespace of samples, or empty before the first one.
	namespace string
	// pairs holds the samples by the versions, such as "webapps.example.com: v1 to v2".
	pairs map[string]*samplePair
}

// samplePair are the samples that an API server converts between two versions.
type samplePair struct {
	accepted int
	// refusal is why the API server has refused an object in the first version.
	refusal error
}

// credential matches the names of fields that can hold credentials.
var credential = regexp.MustCompile(`(?i)(password|token|secret|key|credential)[^.]*$`)

// report fails the test with the problems of a kind, and logs what annotations keep.
func (c *roundTrips) report(kind string, problems []string, kept map[string][]string) {
	c.t.Helper()
	// Problems with the same description differ in their objects. The shortest one has the smallest object.
	slices.SortStableFunc(problems, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	var descriptions []string
	byDescription := make(map[string][]string)
	for _, each := range problems {
		description, _, _ := strings.Cut(each, ": {") // the JSON of the object follows
		if byDescription[description] == nil {
			descriptions = append(descriptions, description)
		}
		byDescription[description] = append(byDescription[description], each)
	}
	for _, each := range descriptions[:min(len(descriptions), shownProblems)] {
		c.t.Errorf("%s (seed %d), %d times: %s", kind, roundTripSeed, len(byDescription[each]), byDescription[each][0])
	}
	if more := len(descriptions) - shownProblems; more > 0 {
		c.t.Errorf("%s has %d further kinds of problems", kind, more)
	}
	for _, step := range slices.Sorted(maps.Keys(kept)) {
		c.t.Logf("%s: from %s, an annotation keeps %s", kind, step, strings.Join(kept[step], ", "))
		for _, path := range kept[step] {
			if credential.MatchString(path) {
				c.t.Logf("WARNING: %s: from %s, an annotation keeps %s, which looks like a credential: give the other version a field for it", kind, step, path)
			}
		}
	}
}

// sample creates an object by dry run, and what a conversion makes of it if the API server accepts the object.
func (c *roundTrips) sample(from, to wire.Resource, object, converted []byte) error {
	c.t.Helper()
	name := fmt.Sprintf("%s: %s to %s", from, from.Version, to.Version)
	p := c.pairs[name]
	if p == nil {
		p = new(samplePair)
		c.pairs[name] = p
	}
	if p.accepted == acceptedSamples {
		return nil
	}
	err := c.create(from, object)
	switch {
	case kube.IsInvalid(err):
		p.refusal = err
		return nil
	case err != nil:
		return err
	}
	p.accepted++
	if err = c.create(to, converted); kube.IsInvalid(err) {
		c.t.Errorf("%s: the API server accepts an object and refuses what it becomes: %v\nobject: %s\nbecomes: %s",
			name, err, object, converted)
		return nil
	}
	return err
}

// create creates an object by dry run.
func (c *roundTrips) create(r wire.Resource, text []byte) error {
	object := new(unstructured.Unstructured)
	if err := object.UnmarshalJSON(text); err != nil {
		return err
	}
	if !r.ClusterScoped && c.namespace == "" {
		c.namespace = c.cluster.Namespace(c.t)
	}
	object.SetNamespace("")
	if !r.ClusterScoped {
		object.SetNamespace(c.namespace)
	}
	object.SetUID("")
	_, err := kube.Dynamic(c.client, r, object.GetNamespace()).Create(c.t.Context(), object, kube.DryRun())
	if kube.IsNoResource(err) {
		return fmt.Errorf("the API server does not serve %s in %s: define the kind in the test: %w", r, r.Version, err)
	}
	return err
}
