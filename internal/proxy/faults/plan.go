package faults

import (
	"encoding/json"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube"
)

// Plan is what a family plans for an exploration.
type Plan struct {
	// Runs holds the faults of each run.
	Runs [][]Fault
	// MoreRuns holds the faults of more runs, for the rest of a budget. Each kind of theirs is among Runs too.
	MoreRuns [][]Fault
	// NotApplicable holds the reasons why kinds, or groups of kinds, cannot happen.
	NotApplicable map[Kind]string
}

// newPlan returns a plan with one run for each fault.
func newPlan(faults []Fault) Plan { return Plan{Runs: slices.Collect(slices.Chunk(faults, 1))} }

// newNotApplicable returns a plan without runs. reason is why the kinds cannot happen.
func newNotApplicable(reason string, kinds ...Kind) Plan {
	p := Plan{NotApplicable: make(map[Kind]string)}
	for _, k := range kinds {
		p.NotApplicable[k] = reason
	}
	return p
}

// PlanInput is what families plan from: the kinds to plan, and the opportunities for faults that the runs without
// faults have shown. These runs are the references.
type PlanInput struct {
	// Kinds are the kinds to plan.
	Kinds []Kind
	// Points are the requests that all references have in common.
	Points []proxy.Point
	// Codes are the HTTP statuses of the answers to the requests of a reference.
	Codes map[proxy.Point]int
	// Steps are the steps of the user.
	Steps []Step
	// Objects are the objects written by the program in the first step that exist after the step. Objects that the
	// user applies are left out.
	Objects []WrittenObject
	// SampleObjects name the objects that the user applies in the first step.
	SampleObjects []Object
	// SampleContents are these objects, as the user applies them.
	SampleContents []json.RawMessage
	// HasExternalSystem is true if the address of an external system is known.
	HasExternalSystem bool
	// HasWebhooks is true if the program publishes configurations of webhooks.
	HasWebhooks bool
	// IsElecting is true if the program elects a leader.
	IsElecting bool
	// CanStopComponents is true if components of the control plane may be stopped.
	CanStopComponents bool
	// IsLimited is true if the exploration has a budget.
	IsLimited bool
	// IsExhaustive is true if each pair of a kind and a request is planned.
	IsExhaustive bool
	// Random chooses among what is not planned completely.
	Random  *rand.Rand
	Cluster Cluster
}

// Step is a step of the user in the references.
type Step struct {
	// Streams are the resources of which the program received changes on a watch during the step. Without a change no
	// fault of a watch can happen.
	Streams []string
	// ExternalParts is how many parts of data passed to the external system and back during the step.
	ExternalParts int
	// CanRestartLater is true if a program that crashes in the step can start again after the next step.
	CanRestartLater bool
	// HasDeletion is true if the user deletes an object.
	HasDeletion bool
}

// WrittenObject is an object that the program has written.
type WrittenObject struct {
	Object
	Content map[string]any
	// Edit is a merge patch that changes a field of the program, or nil if no field can be changed.
	Edit json.RawMessage
}

// Cluster gives access to objects with an administrator's rights.
type Cluster interface {
	// Client returns the client of the administrator.
	Client() *kube.Client
	// APIOf returns the API of a kind in a namespace. Its writes are the user's.
	APIOf(kind schema.GroupVersionKind, namespace string) (kube.API[unstructured.Unstructured], error)
	// Definitions returns the API of CustomResourceDefinitions. Its writes are the user's.
	Definitions() kube.API[unstructured.Unstructured]
}

// has reports whether a kind is planned.
func (in *PlanInput) has(k Kind) bool { return slices.Contains(in.Kinds, k) }

// planned returns those of kinds that are planned.
func (in *PlanInput) planned(kinds ...Kind) []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return !in.has(k) })
}

// writes returns the points of writes.
func (in *PlanInput) writes() []proxy.Point {
	return slices.DeleteFunc(slices.Clone(in.Points), func(p proxy.Point) bool { return !p.IsWrite() })
}

// afterEachStep returns a fault of each kind after each step.
func (in *PlanInput) afterEachStep(kinds ...Kind) (all []Fault) {
	for step := range in.Steps {
		for _, k := range kinds {
			all = append(all, Fault{Kind: k, Step: step})
		}
	}
	return all
}

// DeniableAsInvalid returns the writes of the first step that [DeniedInvalid] can deny.
func (in *PlanInput) DeniableAsInvalid() []proxy.Point {
	return slices.DeleteFunc(in.writes(), func(p proxy.Point) bool {
		return p.Step != 0 || in.Codes[p]/100 != 2 || !isChangeOfContent(p)
	})
}
