package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube/wire"
)

// Kind converts the objects of a kind between its versions. A Kind is safe for concurrent use.
type Kind struct {
	resource wire.Resource
	versions []Version
	// checks holds the check of the schema of each version.
	checks map[string]*schemaCheck
	// parents holds, for each version but the storage version, the step to the next version towards the storage version.
	parents map[string]directedStep
	// copied holds the paths of the fields that a step copies, because the Go types do not know them: see WithLiveSchemas.
	copied map[*Step][][]string
}

// directedStep is a step in one direction, from its original version to its target version.
type directedStep struct {
	step      *Step
	isForward bool
	from, to  string
}

// reversed returns the step in the other direction.
func (d directedStep) reversed() directedStep {
	return directedStep{d.step, !d.isForward, d.to, d.from}
}

// maxVersionLength bounds the name of a version, in characters. The key of an annotation has the name, a dot and 16
// digits, in 63 characters.
const maxVersionLength = 46

// NewKind returns the kind with versions, which steps connect as a tree. Versions that are not served belong to the
// tree too. Each error names the culprit and the way out:
//
//   - an error of a step: see [Step.Err]
//   - versions or steps of two kinds, or a version that is given twice
//   - a step to a version that is not given
//   - a version that no path connects with the storage version, and a second path between two versions
//   - no storage version, or two of them
//   - a pattern of a schema that is no regular expression
func NewKind(versions []Version, steps []*Step) (*Kind, error) {
	if len(versions) == 0 {
		return nil, errors.New("a kind to convert has no versions: give it the Go types of its versions")
	}
	k := &Kind{
		resource: versions[0].Resource, versions: versions, checks: make(map[string]*schemaCheck),
		parents: make(map[string]directedStep),
	}
	var problems []error
	var storage []string
	for _, v := range versions {
		if v.Resource.GroupKind() != k.GroupKind() {
			problems = append(problems, fmt.Errorf("%s and %s are two kinds: make one conversion for each kind",
				k.resource.GroupVersionKind, v.Resource.GroupVersionKind))
			continue
		}
		name := v.Resource.Version
		if k.checks[name] != nil {
			problems = append(problems,
				fmt.Errorf("%s has the version %s twice: give each version one Go type", k.GroupKind(), name))
			continue
		}
		if len(name) > maxVersionLength {
			problems = append(problems,
				fmt.Errorf("%s has the version %s, whose name is too long for the keys of annotations: take at most %d characters",
					k.GroupKind(), name, maxVersionLength))
		}
		if v.Storage {
			storage = append(storage, name)
		}
		check, err := newSchemaCheck(v.Schema)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %s: %w", k.GroupKind(), name, err))
		}
		k.checks[name] = check
	}
	switch len(storage) {
	case 0:
		problems = append(problems, fmt.Errorf(
			"%s has a conversion and no storage version: set Storage in the Definition of one version", k.GroupKind()))
	case 1:
	default:
		problems = append(problems, fmt.Errorf("%s has %d storage versions, %s: set Storage in one Definition only",
			k.GroupKind(), len(storage), strings.Join(storage, " and ")))
	}
	directed, stepProblems := k.directedStepsOf(steps)
	problems = append(problems, stepProblems...)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return k, k.connect(storage[0], directed)
}

// directedStepsOf returns the directed steps from each version. It returns the problems of steps that cannot be used.
func (k *Kind) directedStepsOf(steps []*Step) (map[string][]directedStep, []error) {
	var problems []error
	directed := make(map[string][]directedStep)
	// representative holds for each version one of the versions that steps connect with it. For example, after the step
	// between v1 and v2 both have v1.
	representative := make(map[string]string)
	for name := range k.checks {
		representative[name] = name
	}
	for _, s := range steps {
		if err := s.Err(); err != nil {
			problems = append(problems, err)
			continue
		}
		if s.First.Resource.GroupKind() != k.GroupKind() {
			problems = append(problems,
				fmt.Errorf("%s is given for the kind %s: make one conversion for each kind", s, k.GroupKind()))
			continue
		}
		first, second := s.First.Resource.Version, s.Second.Resource.Version
		isKnown := true
		for _, name := range []string{first, second} {
			if k.checks[name] == nil {
				problems = append(problems, fmt.Errorf(
					"%s: nothing else of the program knows the version %s: add its Go type to the kinds of the program", s, name))
				isKnown = false
			}
		}
		if !isKnown {
			continue
		}
		if representative[first] == representative[second] {
			problems = append(problems,
				fmt.Errorf("%s is a second path between %s and %s: remove one of the paths, because two paths can give two results",
					s, first, second))
			continue
		}
		for name, root := range representative {
			if root == representative[second] && name != second {
				representative[name] = representative[first]
			}
		}
		representative[second] = representative[first]
		forward := directedStep{s, true, first, second}
		directed[first] = append(directed[first], forward)
		directed[second] = append(directed[second], forward.reversed())
	}
	return directed, problems
}

// connect sets the parents. It returns an error if a version is not connected with the storage version.
func (k *Kind) connect(storage string, directed map[string][]directedStep) error {
	reached := []string{storage}
	for i := 0; i < len(reached); i++ {
		for _, d := range directed[reached[i]] {
			if !slices.Contains(reached, d.to) {
				k.parents[d.to] = d.reversed()
				reached = append(reached, d.to)
			}
		}
	}
	var problems []error
	for _, v := range k.versions {
		if name := v.Resource.Version; !slices.Contains(reached, name) {
			problems = append(problems,
				fmt.Errorf("%s has no conversion between %s and the storage version %s: add a conversion between %s and one of %s",
					k.GroupKind(), name, storage, name, strings.Join(reached, ", ")))
		}
	}
	return errors.Join(problems...)
}

// GroupKind returns the group and the name of the kind.
func (k *Kind) GroupKind() schema.GroupKind { return k.resource.GroupKind() }

// Versions returns the versions in the order of [NewKind].
func (k *Kind) Versions() []Version { return k.versions }

// Path returns the path of the URL of conversions, such as /convert.cronjobs.example.com.
func (k *Kind) Path() string { return "/convert." + k.resource.String() }

// stepsBetween returns the steps between two versions of k. For example, v1 is the storage version, and steps connect
// v1 with v2 and v2 with v3. The steps from v3 to v1 are v3 to v2, v2 to v1.
func (k *Kind) stepsBetween(from, to string) []directedStep {
	up, down := k.stepsToStorage(from), k.stepsToStorage(to)
	for len(up) > 0 && len(down) > 0 && up[len(up)-1].from == down[len(down)-1].from {
		up, down = up[:len(up)-1], down[:len(down)-1] // both have the same steps at the end
	}
	for i := len(down) - 1; i >= 0; i-- {
		up = append(up, down[i].reversed())
	}
	return up
}

// stepsToStorage returns the steps from a version to the storage version.
func (k *Kind) stepsToStorage(from string) []directedStep {
	var directed []directedStep
	for d, isBelow := k.parents[from]; isBelow; d, isBelow = k.parents[d.to] {
		directed = append(directed, d)
	}
	return directed
}

// isTowardsStorage reports whether the step leads towards the storage version.
func (k *Kind) isTowardsStorage(d directedStep) bool {
	parent, hasParent := k.parents[d.from]
	return hasParent && parent.to == d.to
}

// run returns what the function of a step makes of content, which is the content of o in the version d.from.
func (k *Kind) run(d directedStep, o *object, content map[string]any) (map[string]any, *failedRun) {
	result, failed := d.step.run(d.isForward, o, content, k.checks[d.from].root, k.checks[d.to].root)
	if failed == nil {
		for _, path := range k.copied[d.step] {
			copyField(path, content, result)
		}
	}
	return result, failed
}

// WithLiveSchemas returns k with the fields that only the schemas of the cluster have, by the names of the versions. A
// program of a later release knows these fields, and the Go types of this program do not. There are two differences:
//
//   - A kept value of such a field goes back if it fits the schema of the cluster.
//   - A field that both versions of a step have at the same path with the same schema is copied. No function does that.
//
// For example, the Go types know spec.size, and the cluster knows spec.watts too, in v1 and in v2. Then watts is
// copied, and an edit of watts in one version is an edit in the other one. If v2 has spec.power in its place, no field
// is copied: an annotation keeps watts.
//
// Errors: those of [NewKind] about a schema.
func (k *Kind) WithLiveSchemas(live map[string]*crd.Schema) (*Kind, error) {
	other := *k
	other.checks, other.copied = make(map[string]*schemaCheck), make(map[*Step][][]string)
	var errs []error
	for name, check := range k.checks {
		if root := withFields(check.root, live[name]); root != check.root {
			var err error
			check, err = newSchemaCheck(root)
			errs = append(errs, err)
		}
		other.checks[name] = check
	}
	for _, d := range k.parents {
		var p foreignPaths
		p.add(nil, k.checks[d.from].root, k.checks[d.to].root, live[d.from], live[d.to])
		if len(p.paths) > 0 {
			other.copied[d.step] = p.paths
		}
	}
	return &other, errors.Join(errs...)
}

// Convert returns an object in another version of k. Convert never fails because of the content of an object, or
// because of a function: what cannot be converted is kept, or the result is marked as incomplete.
//
// Errors: object is no JSON object, its kind is not k, or its version or the target is no version of k. The error of a
// version wraps [ErrUnknownVersion].
func (k *Kind) Convert(object []byte, target string) (Conversion, error) {
	o, err := parseObject(object)
	if err != nil {
		return Conversion{}, err
	}
	if o.kind.GroupKind() != k.GroupKind() {
		return Conversion{}, fmt.Errorf("%s is no %s: %w", o.kind, k.GroupKind(), ErrUnknownVersion)
	}
	from := o.kind.Version
	for _, version := range []string{from, target} {
		if k.checks[version] == nil {
			return Conversion{}, fmt.Errorf("%s %s: %w", k.GroupKind(), version, ErrUnknownVersion)
		}
	}
	c := converter{kind: k, object: o, result: Conversion{From: from, To: target}}
	return c.convert(), nil
}

// ErrUnknownVersion is the error of a conversion from or to a version that the program does not know. A program of
// another release may know the version.
var ErrUnknownVersion = errors.New("the program does not know this version")
