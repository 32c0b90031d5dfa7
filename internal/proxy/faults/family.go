package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Family is a family of kinds. Its file has all that is particular to its kinds.
type Family interface {
	// Describe returns the kinds, and what their runs need.
	Describe() Description
	// Plan returns the runs that try the kinds of in.Kinds.
	Plan(ctx context.Context, in *PlanInput) (Plan, error)
	// Text returns a fault in a line.
	Text(f Fault) string
	// fromEarlierFile returns the present form of a fault that was read from a file. An earlier version may have written
	// the file.
	fromEarlierFile(f Fault) Fault
	// arm returns what an armed fault does to the requests and watches of a program. Error: the fault lacks its
	// trigger, or does nothing to requests and watches.
	arm(a *Armed, s stepContext) (effect, error)

	// BeforeStep carries out the part of a fault that comes before the user's step.
	BeforeStep(ctx context.Context, run *Run, f Fault) error
	// AtTrigger carries out the part of an armed fault that the proxy does not carry out. It returns at the latest when
	// ctx or the step ends.
	AtTrigger(ctx context.Context, run *Run, a *Armed) error
	// AtRest ends an armed fault when the step has come to rest.
	AtRest(run *Run, f Fault) error
	// AfterStep carries out a fault that is not armed, when the step has come to rest.
	AfterStep(ctx context.Context, run *Run, f Fault) error
}

// Families returns all families. Explorations plan them in this order.
func Families() []Family {
	return []Family{
		idle{}, crash{}, singleRequest{}, denial{}, invalidity{}, watch{}, foreign{}, leader{}, stale{}, externalSystem{},
		transition{}, stranger{}, ruledSteps{}, comparedChanges{}, tools{}, clusterChanges{}, webhooks{}, conversions{},
		reread{}, unreadable{}, restored{}, controlPlane{},
	}
}

// Description describes a family.
type Description struct {
	// Group is the name that stands for all Kinds. It may be the name of the only kind.
	Group string
	// Kinds are the kinds of the group.
	Kinds []Kind
	// OptIn are the kinds that happen only if somebody names them. No server does some of them, and few operators are
	// made for the others.
	OptIn []Kind
	// IsDefault is true if Kinds happen unless somebody names other kinds.
	IsDefault bool
	// IsJudgedByRules is true if the runs end otherwise than those without faults, so that rules alone judge them.
	IsJudgedByRules bool
	// WhyNotPlanned is why no run of a kind is planned, such as "the program makes no write", if the runs without faults
	// have shown no opportunity for the kind.
	WhyNotPlanned string
	// DeniesWrites is true if a fault denies a write again and again.
	DeniesWrites bool
	// OutlastsStep is true if the faults end only with the user's next step. The state after the step of the fault is
	// not that of the references.
	OutlastsStep bool
	// NeedsStandby is true if a second replica of the program must stand by.
	NeedsStandby bool
	// InterruptsServer is true if the API server refuses requests of everybody for some time, and ends watches.
	InterruptsServer bool
	// NeedsOwnControlPlane is true if a fault concerns everybody who uses the control plane. Then no other run is made at
	// the same time.
	NeedsOwnControlPlane bool
}

// has reports whether a kind belongs to the family.
func (d Description) has(k Kind) bool {
	return slices.Contains(d.Kinds, k) || slices.Contains(d.OptIn, k)
}

// FamilyOf returns the family of a kind. The family of an unknown kind refuses to be armed.
func FamilyOf(k Kind) Family {
	for _, f := range Families() {
		if f.Describe().has(k) {
			return f
		}
	}
	return unknownFamily{}
}

// DefaultKinds returns the kinds that an exploration covers by default.
func DefaultKinds() (kinds []Kind) {
	for _, f := range Families() {
		if d := f.Describe(); d.IsDefault {
			kinds = append(kinds, d.Kinds...)
		}
	}
	return kinds
}

// Groups returns the names that stand for several kinds, or for the only kind of a family.
func Groups() (names []string) {
	for _, f := range Families() {
		if d := f.Describe(); d.Group != "" {
			names = append(names, d.Group)
		}
	}
	return names
}

// ParseKinds returns the kinds that a name stands for: the name of a group, or of a kind.
func ParseKinds(name string) ([]Kind, error) {
	var known []Kind
	for _, f := range Families() {
		d := f.Describe()
		if name != "" && d.Group == name { // the group of some families has no name
			return d.Kinds, nil
		}
		known = slices.Concat(known, d.Kinds, d.OptIn)
	}
	if slices.Contains(known, Kind(name)) {
		return []Kind{Kind(name)}, nil
	}
	return nil, fmt.Errorf("there is no kind of fault %q: use %s, or one of %v", name, strings.Join(Groups(), ", "), known)
}

// unknownFamily is the family of the kinds that no family of [Families] has.
type unknownFamily struct{ baseFamily }

// baseFamily has the default methods of a family. All families embed baseFamily for what they do not do.
type baseFamily struct{}

func (baseFamily) Describe() Description { return Description{} }

func (baseFamily) Plan(context.Context, *PlanInput) (Plan, error) { return Plan{}, nil }

func (baseFamily) Text(f Fault) string {
	switch {
	case f.At != nil:
		return fmt.Sprintf("%s at %s", f.Kind, f.At)
	case f.Stream != "":
		return fmt.Sprintf("%s of %s in step %d", f.Kind, f.Stream, f.Step+1)
	case f.Object != nil:
		return fmt.Sprintf("%s of %s after step %d", f.Kind, f.Object, f.Step+1)
	}
	return fmt.Sprintf("%s after step %d", f.Kind, f.Step+1)
}

func (baseFamily) fromEarlierFile(f Fault) Fault { return f }

func (baseFamily) arm(a *Armed, _ stepContext) (effect, error) { //nolint:unparam // other families return an effect
	return nil, fmt.Errorf("the proxy does not inject faults of the kind %q", a.fault.Kind)
}

func (baseFamily) BeforeStep(context.Context, *Run, Fault) error { return nil }

func (baseFamily) AtTrigger(_ context.Context, run *Run, a *Armed) error {
	run.RecordFault(InProgram, a.fault.String())
	return nil
}

func (baseFamily) AtRest(*Run, Fault) error { return nil }

func (baseFamily) AfterStep(context.Context, *Run, Fault) error { return nil }
