package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yare-go/yare/explore/internal/engine"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// Settings change what [Run] does. The zero value makes all planned runs with the objects of the file sample.yaml. A
// setting that is wrong fails the test.
type Settings struct {
	// Only limits the exploration to kinds of faults: groups such as crash and watch, or single kinds such as
	// watch-missed. The guide "Exploring" lists them, and so does the error for an unknown name. Default: the kinds
	// that an API server may cause.
	Only []string
	// Except leaves out kinds of faults, which are named as in Only. The report lists them.
	Except []string
	// OptIn adds kinds of faults that are not among the default ones. For example, no API server does watch-twice,
	// and restored needs OwnCluster.
	OptIn []string
	// OwnCluster is a cluster that [yaretest.New] has started, in place of the cluster of [yaretest.Shared]. The
	// exploration adds faults that stop components of its control plane: the API server and etcd are killed and
	// started again, and etcd is paused, at some writes of the program and after each step. These runs come after
	// all others, one at a time. Nobody else may use the cluster meanwhile.
	OwnCluster *yaretest.Cluster

	// Budget is how long new runs are begun. Runs that last much longer are cut. When all planned runs are made, the
	// rest of the budget goes to more pairs of a kind and a request. Zero: until all planned runs are made.
	Budget time.Duration
	// Exhaustive makes each pair of a kind of fault and a request. Default: some kinds at each request, and each kind
	// that can happen at one request at least.
	Exhaustive bool
	// Seed is the number by which the exploration chooses what it does not do completely.
	Seed uint64
	// Parallel is the number of runs at a time. A program with a fixed port needs 1. Zero: two to eight for each
	// processor, by the load, or one if the program writes objects in no namespace.
	Parallel int

	// Settle is how long at least nothing may happen before a run is at rest. A program that works on an external system
	// makes no request meanwhile. A program that uses yare says that it works, and needs no Settle.
	Settle time.Duration
	// OutsideAddress is the address of the external system of the operator, as host:port. The operator gets another
	// address in its place: {outside} in [Binary], or an argument of the function of [Parts]. It leads to a relay of the
	// exploration, which refuses, cuts and delays connections.
	OutsideAddress string
	// LookOutside returns a text about what the run of a namespace has in the external system. The lines are compared and
	// judged as an object is. They should have no random text. Calls are concurrent.
	LookOutside func(ctx context.Context, namespace string) (string, error)
	// EmptyOutside removes what the run of a namespace has left in the external system. Calls are concurrent.
	EmptyOutside func(ctx context.Context, namespace string) error

	// Samples are the objects that the user applies and deletes. Their namespaces do not count. Default: the objects
	// in SampleFile.
	Samples []kube.Object
	// SampleFile is the file of the samples. Default: sample.yaml beside the program.
	SampleFile string
	// Values has values of fields of the samples for transitions, such as "spec.schedule": {"@daily", "@hourly"},
	// in place of the values that the schema suggests. A field without values, and the fields below it, keep the
	// value of the sample.
	Values map[string][]any
	// ValuesFile is a file of objects of the same kinds and names as the samples, with other values: another image,
	// schedule or name of a reference, for example. The exploration tries these values too. Only they change a ConfigMap
	// or Secret that is immutable, and a Secret of a type that requires keys. Default: none.
	ValuesFile string
	// PairsFile is a file of objects of the same kinds as the samples, with the objects that they refer to. One object of
	// each pair with similar names is made of them, so that the objects of a pair share no reference. Further runs show
	// whether a program changes or deletes the children of the other object. Default: the objects of a pair are copies of
	// the samples, for which only deletions are judged.
	PairsFile string
	// Scenario is what the user does in each run, step by step, in place of applying and deleting the samples. The
	// first step must apply objects. A step begins when the operator has come to rest after the step before.
	Scenario []Step

	// Always are checks that must hold at every version of every object of each run. The checks follow the order in
	// which the API server made the versions. A violation is a finding at once, also in the runs without faults.
	Always []Check
	// Sometimes are conditions. Each must hold at one version of one run at least. Otherwise a complete exploration
	// fails: it has not tried what the condition stands for.
	Sometimes []Check
	// AtRest are checks of the rest after each step. A check that fails is repeated for as long as a wrong state may
	// take to become right.
	AtRest []Check
	// AtEnd are checks of the rest after the last step, as AtRest. The last step of the default scenario deletes the
	// samples.
	AtEnd []Check

	// Ignore has the differences that are intended in all runs, each with its reason. A key names a field, such as
	// "status.lastBackup", or a resource with a name and a field, such as "secrets/web data.password". An asterisk
	// stands for any text, and the field * for the whole object.
	Ignore map[string]string
	// AcceptFile is a file of intended differences. The file is a list, in YAML or JSON:
	//
	//	# accept.yaml
	//	- objects: secrets/web      # a resource, or resource/name. Default: all objects
	//	  path: data.password       # a field with what is below it. Default: the whole object
	//	  faults: [crash]           # the kinds of faults, as in Only. Default: all runs
	//	  rule: remade              # what breaks this rule, and nothing else. Default: differences, and all rules
	//	  reason: nobody reads it   # must not be empty
	//
	// An asterisk in objects or path stands for any text. The report prints the lines that accept a finding, and the
	// entries not needed by a complete exploration.
	AcceptFile string

	// ReportFile is the file for the findings and the coverage: a page if its name ends in .html, else JSON.
	ReportFile string
	// ReplayFile is the JSON report of an earlier exploration. The runs of its findings are repeated in place of an
	// exploration. A finding that a repetition shows fails the test.
	ReplayFile string
}

// Check is a function that examines the objects of a run. Runs are concurrent, so checks are called concurrently.
//
//	explore.Check{"a page has an owner", func(s explore.State) error {
//		for _, page := range explore.Objects[corev1.ConfigMap](s) { … }
//	}}
type Check struct {
	// Name names the check in findings.
	Name string
	// Verify returns an error if the check does not hold in a state.
	Verify func(State) error
}

// Step is what the user of an operator does at one time: the user applies objects, and then deletes others.
type Step struct {
	// Name names the step in findings.
	Name string
	// Apply are the objects that the user applies, and Delete the objects that the user deletes. Their namespaces
	// do not count.
	Apply, Delete []kube.Object
}

// newExploration returns the exploration that the settings describe, or an error that names the wrong setting.
func (s Settings) newExploration() (*exploration, error) {
	e := &exploration{cluster: s.OwnCluster, reportFile: s.ReportFile, replayFile: s.ReplayFile, sampleFile: s.SampleFile}
	e.valuesFile, e.pairsFile = s.ValuesFile, s.PairsFile
	e.settings.Budget, e.settings.Seed, e.settings.Parallel, e.settings.Values = s.Budget, s.Seed, s.Parallel, s.Values
	e.settings.IsExhaustive, e.settings.Settle = s.Exhaustive, s.Settle
	if s.OutsideAddress != "" || s.LookOutside != nil || s.EmptyOutside != nil {
		e.settings.ExternalSystem = &engine.ExternalSystem{
			Address: s.OutsideAddress, Look: s.LookOutside, Empty: s.EmptyOutside,
		}
	}
	if s.Parallel < 0 {
		return nil, fmt.Errorf("explore.Settings.Parallel is %d: use 1 or more", s.Parallel)
	}
	if s.OwnCluster != nil {
		components, err := s.OwnCluster.ControlPlane()
		if err != nil {
			return nil, fmt.Errorf("explore.Settings.OwnCluster is a cluster whose API server and etcd are stopped: %w", err)
		}
		e.settings.Components = components
	}
	for _, each := range []func() error{
		func() (err error) { e.settings.Only, err = parseKinds(s.Only); return err },
		func() (err error) { e.settings.Except, err = parseKinds(s.Except); return err },
		func() (err error) { e.settings.OptIn, err = parseKinds(s.OptIn); return err },
		func() (err error) { e.settings.Accepted, err = s.acceptances(); return err },
		func() (err error) { e.settings.Checks, err = s.checks(); return err },
		func() (err error) { e.settings.Steps, err = s.steps(); return err },
		func() (err error) {
			e.settings.Samples, err = samplesOf("explore.Settings.Samples", s.Samples)
			return err
		},
	} {
		if err := each(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// parseKinds returns the kinds of faults that names of kinds and of groups stand for.
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

// acceptances returns the intended differences of Ignore, sorted by their paths, and of AcceptFile.
func (s Settings) acceptances() (accepted []finding.Acceptance, err error) {
	for path, reason := range s.Ignore {
		objects, field, hasObjects := strings.Cut(path, " ")
		if !hasObjects {
			objects, field = "", path
		}
		accepted = append(accepted, finding.Acceptance{Objects: objects, Path: field, Reason: reason})
	}
	slices.SortFunc(accepted, func(a, b finding.Acceptance) int {
		return strings.Compare(a.Objects+" "+a.Path, b.Objects+" "+b.Path)
	})
	if s.AcceptFile == "" {
		return accepted, nil
	}
	fromFile, err := engine.ReadAcceptances(s.AcceptFile)
	return append(accepted, fromFile...), err
}

// checks returns the checks of all moments.
func (s Settings) checks() (checks []engine.Check, err error) {
	for _, each := range []struct {
		moment engine.Moment
		checks []Check
	}{{engine.Always, s.Always}, {engine.Sometimes, s.Sometimes}, {engine.AtRest, s.AtRest}, {engine.AtEnd, s.AtEnd}} {
		for _, check := range each.checks {
			if check.Name == "" || check.Verify == nil {
				return nil, errors.New("an explore.Check needs a name and a function")
			}
			checks = append(checks, engine.Check{Name: check.Name, Moment: each.moment, Verify: func(state history.State) error {
				s := State{state: state, failure: new(error)}
				if err := check.Verify(s); err != nil {
					return err
				}
				return *s.failure
			}})
		}
	}
	return checks, nil
}

// steps returns the steps of the scenario.
func (s Settings) steps() (steps []finding.Step, err error) {
	for _, step := range s.Scenario {
		made := finding.Step{Name: step.Name}
		if made.Apply, err = samplesOf(fmt.Sprintf("the step %q", step.Name), step.Apply); err != nil {
			return nil, err
		}
		for _, o := range step.Delete {
			kind, err := kube.TypeOfObject(o)
			if err != nil {
				return nil, fmt.Errorf("the object %s of the step %q: %w", o.GetName(), step.Name, err)
			}
			made.Delete = append(made.Delete, faults.Object{Resource: kind.Resource.GroupResource().String(), Name: o.GetName()})
		}
		steps = append(steps, made)
	}
	return steps, nil
}

// samplesOf returns objects as the exploration applies them. The owner names the setting in errors.
func samplesOf(owner string, objects []kube.Object) (samples []json.RawMessage, err error) {
	for _, o := range objects {
		sample, err := engine.Sample(o)
		if err != nil {
			return nil, fmt.Errorf("the object %s of %s: %w", o.GetName(), owner, err)
		}
		samples = append(samples, sample)
	}
	return samples, nil
}
