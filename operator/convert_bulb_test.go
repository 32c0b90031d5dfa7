package operator_test

import (
	"context"
	"strings"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
)

// BulbFinalizer is the finalizer of the programs with bulbs.
const BulbFinalizer = "bulbs.example.com/cleanup"

// The versions of Bulbs have different fields. A Bulb of v1 has the color in one text, such as "red-dark". Only v1 has a note,
// and only v2 has watts. S is what a release does with a version.
type (
	bulbSpec1[G interface{ Group() string }, S versionState] struct {
		Color string `json:"color,omitempty"`
		Note  string `json:"note,omitempty"`
	}
	bulbSpec2[G interface{ Group() string }, S versionState] struct {
		Hue   string `json:"hue,omitempty"`
		Shade string `json:"shade,omitempty"`
		Watts int    `json:"watts,omitempty"`
	}
	bulbStatus struct {
		// Seen is the color that the last reconcile has seen.
		Seen string `json:"seen,omitempty"`
	}
)

// versionState changes the definition of a version.
type versionState interface{ apply(d *kube.Definition) }

type (
	stored    struct{}
	served    struct{}
	notServed struct{}
)

func (stored) apply(d *kube.Definition)    { d.Storage = true }
func (served) apply(*kube.Definition)      {}
func (notServed) apply(d *kube.Definition) { d.NotServed = true }

func bulbDefinition[G interface{ Group() string }, S versionState](version string) kube.Definition {
	var g G
	var s S
	d := kube.Definition{Group: g.Group(), Version: version, Kind: "Bulb"}
	s.apply(&d)
	return d
}

func (bulbSpec1[G, S]) Definition() kube.Definition { return bulbDefinition[G, S]("v1") }
func (bulbSpec2[G, S]) Definition() kube.Definition { return bulbDefinition[G, S]("v2") }

// A group of its own for each test that installs the program with bulbs: the definition is one for the cluster.
type (
	UpgradedBulbs    struct{}
	LivingBulbs      struct{}
	RestartedBulbs   struct{}
	RestoredBulbs    struct{}
	UninstalledBulbs struct{}
	DeletedBulbs     struct{}
	JumpingBulbs     struct{}
)

// Group returns the API group.
func (UpgradedBulbs) Group() string { return "upgraded.bulbs.example.com" }

// Group returns the API group.
func (LivingBulbs) Group() string { return "living.bulbs.example.com" }

// Group returns the API group.
func (RestartedBulbs) Group() string { return "restarted.bulbs.example.com" }

// Group returns the API group.
func (RestoredBulbs) Group() string { return "restored.bulbs.example.com" }

// Group returns the API group.
func (UninstalledBulbs) Group() string { return "uninstalled.bulbs.example.com" }

// Group returns the API group.
func (DeletedBulbs) Group() string { return "deleted.bulbs.example.com" }

// Group returns the API group.
func (JumpingBulbs) Group() string { return "jumping.bulbs.example.com" }

// bulbPrograms are the programs with bulbs that this test binary can be: see [runRelease].
var bulbPrograms = map[string]func(release string) operator.Program{
	UpgradedBulbs{}.Group(): bulbProgram[UpgradedBulbs], LivingBulbs{}.Group(): bulbProgram[LivingBulbs],
	RestartedBulbs{}.Group(): bulbProgram[RestartedBulbs], RestoredBulbs{}.Group(): bulbProgram[RestoredBulbs],
	UninstalledBulbs{}.Group(): bulbProgram[UninstalledBulbs], DeletedBulbs{}.Group(): bulbProgram[DeletedBulbs],
	JumpingBulbs{}.Group(): bulbProgram[JumpingBulbs],
}

// bulbProgram returns a release of a program with bulbs. The releases are the rows of docs/guide/versions.md:
//
//	     v1               v2
//	A    served, stored
//	B    served, stored   served
//	C    served           served, stored
//	D    not served       served, stored
//	E                     served, stored
//
// The controller works in the storage version.
func bulbProgram[G interface{ Group() string }](release string) operator.Program {
	return operator.Program{Name: "bulbs", Parts: func() ([]operator.Part, error) {
		switch release {
		case "A":
			return []operator.Part{controlsBulbs1[G, stored]()}, nil
		case "B":
			return []operator.Part{controlsBulbs1[G, stored](), convertsBulbs[G, stored, served]()}, nil
		case "C":
			return []operator.Part{controlsBulbs2[G, stored](), convertsBulbs[G, served, stored]()}, nil
		case "D":
			return []operator.Part{controlsBulbs2[G, stored](), convertsBulbs[G, notServed, stored]()}, nil
		}
		return []operator.Part{controlsBulbs2[G, stored]()}, nil
	}}
}

// controlsBulbs1 returns a controller of bulbs of v1, which writes their status.
func controlsBulbs1[G interface{ Group() string }, S versionState]() operator.Part {
	type bulb = kube.CustomResource[bulbSpec1[G, S], bulbStatus]
	return controller.New(func(ctx context.Context, b *bulb, c *kube.Client) (controller.Action, error) {
		b.Status.Seen = b.Spec.Color
		return controller.Done(), kube.IgnoreNotFound(c.ApplyStatus(ctx, b))
	}).Finalizer(BulbFinalizer, func(context.Context, *bulb, *kube.Client) (controller.Cleanup, error) {
		return controller.CleanupDone(), nil
	})
}

// controlsBulbs2 returns a controller of bulbs of v2, which writes their status.
func controlsBulbs2[G interface{ Group() string }, S versionState]() operator.Part {
	type bulb = kube.CustomResource[bulbSpec2[G, S], bulbStatus]
	return controller.New(func(ctx context.Context, b *bulb, c *kube.Client) (controller.Action, error) {
		b.Status.Seen = joinedColor(b.Spec.Hue, b.Spec.Shade)
		return controller.Done(), kube.IgnoreNotFound(c.ApplyStatus(ctx, b))
	}).Finalizer(BulbFinalizer, func(context.Context, *bulb, *kube.Client) (controller.Cleanup, error) {
		return controller.CleanupDone(), nil
	})
}

func convertsBulbs[G interface{ Group() string }, S, T versionState]() operator.Part {
	type (
		first  = kube.CustomResource[bulbSpec1[G, S], bulbStatus]
		second = kube.CustomResource[bulbSpec2[G, T], bulbStatus]
	)
	return conversion.Between(func(a *first, b *second) {
		b.Spec.Hue, b.Spec.Shade, _ = strings.Cut(a.Spec.Color, "-")
		b.Status = a.Status
	}, func(b *second, a *first) {
		a.Spec.Color = joinedColor(b.Spec.Hue, b.Spec.Shade)
		a.Status = b.Status
	})
}

// joinedColor returns the color of v1 with a hue and a shade of v2.
func joinedColor(hue, shade string) string {
	if shade == "" {
		return hue
	}
	return hue + "-" + shade
}
