package yaretest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/explore"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/report"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// Operator is a program that [Explore] explores: [Parts] or a [Binary].
type Operator interface {
	// open returns what is explored, its CRDs as YAML, and the path of its sample file.
	open(t testing.TB) (o explore.Operator, crds []byte, sample string)
}

// Parts returns the operator that consists of the parts that a function returns. Each life of the
// operator runs in the process of the test, with new parts. A crash cuts the life off from the API
// server for good. The types of the parts must be defined: see [Define].
func Parts(parts func() []operator.Part) Operator { return partsOperator{parts} }

type partsOperator struct{ parts func() []operator.Part }

func (p partsOperator) open(testing.TB) (explore.Operator, []byte, string) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")
	return explore.Parts(name, p.parts), nil, "sample.yaml"
}

// Binary is an operator that is a program, which need not use yare.
type Binary struct {
	// Path is the folder of a Go main package, such as ".", which is compiled, or a compiled program.
	Path string
	// Args and Env are the arguments and additions to the environment. {kubeconfig}, {namespace}, and
	// {port1} to {port9} are filled in. KUBECONFIG is set.
	Args, Env []string
	// Install are files of objects that are applied before, such as CustomResourceDefinitions, or folders of
	// such files. Without any, the program prints them with its command crd, which programs that use yare
	// have.
	Install []string
	// Account is the account whose permissions the requests of the program have: the permissions of its
	// ClusterRoleBindings, and, in the namespace of each run, of the RoleBindings in the namespace of the
	// account. All other requests are refused with 403. Default: the permissions of an administrator. A program
	// that uses yare refuses itself the requests that its parts do not declare.
	Account *ServiceAccount
	// Cover counts the statements of the program that run: see [Coverage]. Path is a folder then. A life that
	// ends in a crash is not counted.
	Cover bool
}

func (b Binary) open(t testing.TB) (explore.Operator, []byte, string) {
	t.Helper()
	binary, sample := explore.Binary{Path: b.Path, Args: b.Args, Env: b.Env}, "sample.yaml"
	if b.Account != nil {
		binary.Account = &explore.Account{Namespace: b.Account.namespace, Name: b.Account.name}
	}
	if b.Cover {
		binary.CoverFolder = t.TempDir()
	}
	info, err := os.Stat(b.Path)
	switch isFolder := err == nil && info.IsDir(); {
	case isFolder && b.Cover:
		binary.Path, sample = build(t, b.Path, "-cover"), filepath.Join(b.Path, "sample.yaml")
	case isFolder:
		binary.Path, sample = Build(t, b.Path), filepath.Join(b.Path, "sample.yaml")
	case b.Cover:
		t.Fatalf("Cover is true, and %s is no folder: name the folder of the main package", b.Path)
	}
	read := func() ([]byte, error) { return explore.ReadInstall(b.Install) }
	if len(b.Install) == 0 {
		read = func() ([]byte, error) { return binary.CRDs(t.Context()) }
	}
	crds, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return binary, crds, sample
}

// ExploreOption changes what [Explore] does. Explore reports an option that is wrong.
type ExploreOption func(*exploration) error

// exploration is what the options of Explore set.
type exploration struct {
	options explore.Options
	report  string
	// cluster is the cluster of [Plane], or nil.
	cluster *Cluster
	replay  string
}

// Samples sets the objects that the user applies and deletes. Their namespaces do not count. Default:
// the objects in the file sample.yaml beside the program.
func Samples(objects ...kube.Object) ExploreOption {
	return func(e *exploration) error {
		for _, o := range objects {
			raw, err := explore.Sample(o)
			if err != nil {
				return fmt.Errorf("the sample %s: %w", o.GetName(), err)
			}
			e.options.Samples = append(e.options.Samples, raw)
		}
		return nil
	}
}

// SampleFile sets the file whose objects the user applies and deletes.
func SampleFile(path string) ExploreOption {
	return func(e *exploration) (err error) {
		e.options.Samples, err = explore.ReadSamples(path)
		return err
	}
}

// Step is one thing that the user of an operator does. [Apply] and [Delete] return steps.
type Step struct {
	step schedule.Step
	err  error
}

// Apply returns a step in which the user applies objects. Their namespaces do not count.
func Apply(name string, objects ...kube.Object) Step {
	s := Step{step: schedule.Step{Name: name}}
	for _, o := range objects {
		raw, err := explore.Sample(o)
		if err != nil {
			s.err = fmt.Errorf("the object %s of the step %q: %w", o.GetName(), name, err)
		}
		s.step.Apply = append(s.step.Apply, raw)
	}
	return s
}

// Delete returns a step in which the user deletes objects.
func Delete(name string, objects ...kube.Object) Step {
	s := Step{step: schedule.Step{Name: name}}
	for _, o := range objects {
		kind, err := kube.TypeOfObject(o)
		if err != nil {
			s.err = fmt.Errorf("the object %s of the step %q: %w", o.GetName(), name, err)
		}
		s.step.Delete = append(s.step.Delete, faults.Object{Resource: kind.Resource.GroupResource().String(), Name: o.GetName()})
	}
	return s
}

// Scenario sets what the user does in each run, one step after the other, in place of applying and
// deleting the samples. The first step must apply objects.
func Scenario(steps ...Step) ExploreOption {
	return func(e *exploration) error {
		e.options.Steps = nil
		for _, s := range steps {
			if s.err != nil {
				return s.err
			}
			e.options.Steps = append(e.options.Steps, s.step)
		}
		return nil
	}
}

// Only limits the exploration to kinds of faults: crash, request, watch, foreign, leader and transition,
// or single ones such as watch-missed.
func Only(kinds ...string) ExploreOption {
	return func(e *exploration) (err error) {
		e.options.Only, err = parseKinds(kinds)
		return err
	}
}

// Beyond adds kinds of faults that are not among the default ones: foreign-recreate and strip-finalizers, for which
// few operators are made; watch-twice, which no API server does; unreadable objects of the operator's kind; and
// restored, a backup that is restored, which needs [Plane].
func Beyond(kinds ...string) ExploreOption {
	return func(e *exploration) (err error) {
		e.options.Beyond, err = parseKinds(kinds)
		return err
	}
}

func parseKinds(names []string) (kinds []faults.Kind, err error) {
	for _, name := range names {
		parsed, err := faults.ParseKinds(name)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, parsed...)
	}
	return kinds, nil
}

// Budget sets how long new runs are begun. Default: until all planned runs are made.
func Budget(d time.Duration) ExploreOption {
	return func(e *exploration) error {
		e.options.Budget = d
		return nil
	}
}

// Seed sets the number by which the exploration chooses what it does not do completely. Default: 0.
func Seed(n uint64) ExploreOption {
	return func(e *exploration) error {
		e.options.Seed = n
		return nil
	}
}

// Parallel sets how many runs are made at a time. A program with a fixed port needs 1. Default: two to eight
// for each processor, by the load, or one if the program writes objects in no namespace.
func Parallel(n int) ExploreOption {
	return func(e *exploration) error {
		if n < 1 {
			return fmt.Errorf("the number of runs at a time is %d: use 1 or more", n)
		}
		e.options.Parallel = n
		return nil
	}
}

// Values sets the values of a field of the samples in transitions, such as
// Values("spec.schedule", "*/5 * * * *"), in place of the values that the schema suggests. Without values the
// field, and what is below it, keeps the value of the sample.
func Values(field string, values ...any) ExploreOption {
	return func(e *exploration) error {
		if e.options.Values == nil {
			e.options.Values = make(map[string][]any)
		}
		e.options.Values[field] = append(e.options.Values[field], values...)
		return nil
	}
}

// Ignore leaves out a difference that is intended in all runs, with the reason. The path names a field,
// such as "status.lastBackup", or a resource with a name and a field, such as "secrets/web data.password".
// An asterisk stands for any text, and the field * for the whole object.
func Ignore(path, reason string) ExploreOption {
	return func(e *exploration) error {
		objects, field, hasObjects := strings.Cut(path, " ")
		if !hasObjects {
			objects, field = "", path
		}
		e.options.Accepted = append(e.options.Accepted, finding.Acceptance{Objects: objects, Path: field, Reason: reason})
		return nil
	}
}

// AcceptFile leaves out the differences that are intended by a file of YAML or JSON, which is a list:
//
//	# accept.yaml
//	- objects: secrets/web      # a resource, or resource/name. Default: all objects
//	  path: data.password       # a field with what is below it. Default: the whole object
//	  faults: [crash]           # the kinds of faults, as for Only. Default: all runs
//	  reason: nobody reads it   # must not be empty
//
// An asterisk in objects or path stands for any text. Explore prints the lines that accept a finding, and
// the entries that a complete exploration did not need.
func AcceptFile(path string) ExploreOption {
	return func(e *exploration) error {
		accepted, err := explore.ReadAcceptances(path)
		e.options.Accepted = append(e.options.Accepted, accepted...)
		return err
	}
}

// ExploredState holds the objects of a run at one moment. A check must not keep it.
type ExploredState struct {
	state history.State
	// failure is why an object could not be decoded.
	failure *error
}

// Objects returns the objects of a type that exist in a state, by name. The caller may change them. A check
// in which an object does not fit its type has failed, whatever the check returns.
func Objects[T any, P kube.ObjectOf[T]](s ExploredState) []*T {
	resource, err := kube.ResourceOf[T, P]()
	if err != nil {
		*s.failure = err
		return nil
	}
	var objects []*T
	for _, v := range s.state.Objects() {
		if v.Resource != resource.String() {
			continue
		}
		object := new(T)
		data, err := kube.Marshal(v.Object)
		if err == nil {
			err = kube.Unmarshal(data, object)
		}
		if err != nil {
			*s.failure = fmt.Errorf("decode %s %s: %w", resource, v.Name, err)
			continue
		}
		objects = append(objects, object)
	}
	return objects
}

// Always adds a check that must hold at every version of every object of each run, in the order in which
// the API server made the versions. A violation is a finding at once, also in the runs without faults. Runs
// are concurrent, so checks are called concurrently.
//
//	yaretest.Always("a page has an owner", func(s yaretest.ExploredState) error {
//		for _, page := range yaretest.Objects[corev1.ConfigMap](s) { … }
//	})
func Always(name string, check func(ExploredState) error) ExploreOption {
	return addCheck(name, explore.Always, check)
}

// Sometimes adds a condition that must hold at one version of one run at least. Otherwise a complete
// exploration fails: it has not tried what the condition stands for.
func Sometimes(name string, condition func(ExploredState) error) ExploreOption {
	return addCheck(name, explore.Sometimes, condition)
}

// AtRest adds a check of the rest after each step. A check that fails is repeated for as long as a wrong
// state may take to become right.
func AtRest(name string, check func(ExploredState) error) ExploreOption {
	return addCheck(name, explore.AtRest, check)
}

// AtEnd adds a check of the rest after the last step, as [AtRest] does. The last step of the default scenario
// deletes the samples.
func AtEnd(name string, check func(ExploredState) error) ExploreOption {
	return addCheck(name, explore.AtEnd, check)
}

func addCheck(name string, moment explore.Moment, check func(ExploredState) error) ExploreOption {
	return func(e *exploration) error {
		if name == "" || check == nil {
			return errors.New("a check needs a name and a function")
		}
		e.options.Checks = append(e.options.Checks, explore.Check{Name: name, Moment: moment, Run: func(state history.State) error {
			s := ExploredState{state: state, failure: new(error)}
			if err := check(s); err != nil {
				return err
			}
			return *s.failure
		}})
		return nil
	}
}

// ReportTo writes the findings and the coverage to a file: as a page if its name ends in .html, else as
// JSON.
func ReportTo(path string) ExploreOption {
	return func(e *exploration) error {
		e.report = path
		return nil
	}
}

// Replay makes the runs of the findings in a JSON file of [ReportTo] again, in place of an exploration. A
// finding that is seen again fails the test.
func Replay(path string) ExploreOption {
	return func(e *exploration) error {
		e.replay = path
		return nil
	}
}

// Coverage is what an exploration has run.
type Coverage = finding.Coverage

// Explore runs an operator against the API server under the faults that Kubernetes allows, one or more in
// each run, and compares what the operator leaves with what it leaves without faults. Each run has a
// namespace of its own. A finding fails t; what was only late is logged. Explore returns the coverage.
//
//	func TestWebApp(t *testing.T) { yaretest.Explore(t, yaretest.Binary{Path: "."}) }
func Explore(t testing.TB, o Operator, options ...ExploreOption) *Coverage {
	t.Helper()
	var e exploration
	for _, option := range options {
		if err := option(&e); err != nil {
			t.Fatal(err)
		}
	}
	cluster := e.cluster
	if cluster == nil {
		cluster = Start(t)
	}
	operator, crds, sample := o.open(t)
	e.options.Config = cluster.Config()
	if len(crds) > 0 {
		if err := explore.Install(t.Context(), cluster.Config(), crds); err != nil {
			t.Fatalf("install the kinds of %s: %v", operator, err)
		}
	}
	if len(e.options.Samples) == 0 && len(e.options.Steps) == 0 && e.replay == "" {
		if err := SampleFile(sample)(&e); err != nil {
			t.Fatalf("read the samples: %v: name them with yaretest.Samples", err)
		}
	}
	record, err := e.run(t.Context(), operator)
	if err != nil {
		t.Fatalf("explore %s: %v", operator, err)
	}
	var text strings.Builder
	if err := report.Text(&text, record); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
	if e.report != "" {
		if err := explore.WriteReport(e.report, record); err != nil {
			t.Error(err)
		}
	}
	for _, f := range record.Findings {
		if !f.Verdict.IsWarning() {
			t.Errorf("%s: %s", f.Verdict, explore.Summary(f))
		}
	}
	return &record.Coverage
}

// replayTries is how often the runs of a finding are made again.
const replayTries = 3

// run explores the operator, or replays findings.
func (e *exploration) run(ctx context.Context, operator explore.Operator) (finding.Record, error) {
	if e.replay == "" {
		return explore.Explore(ctx, operator, e.options)
	}
	return explore.ReplayFile(ctx, operator, e.options, e.replay, replayTries)
}
