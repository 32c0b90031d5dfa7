// Package profiles serves the profiles of a running program, for go tool pprof.
//
//	operator.Main(controller.New(reconcile), secure.New(), profiles.New())
package profiles

import (
	"context"
	"errors"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// New returns a part that adds the flag --pprof. With this flag the program serves profiles below /debug/pprof/, by the
// paths of package net/http/pprof. Without the flag the part does nothing.
//
// The flag needs --listen-secure of package secure. A reader needs the permission to get the path, such as
// /debug/pprof/heap, as a nonResourceURL. A profile has the names of functions, and sizes and times. It has no contents of
// objects: a dump of the heap, which holds Secrets, is not served.
//
// The part adds 0.3 MB to a program, most of which is package runtime/pprof.
func New() operator.Part { return part{} }

// part is the part of [New].
type part struct{}

// Needs returns the needs of a service, which does not keep a program running.
func (part) Needs() (kube.Needs, error) { return kube.Needs{Service: true}, nil }

// Start does nothing: the program starts the feature before its parts.
func (part) Start(context.Context, *controller.Runtime) error { return nil }

// FeatureName returns the name of the feature: see [feature.Bringer].
func (part) FeatureName() string { return "operator/profiles" }

// NewFeature returns the profiles: see [feature.Bringer].
func (part) NewFeature() feature.Feature { return new(profilePages) }

// profilePages are the profiles of a program.
type profilePages struct {
	program *feature.Program
	// isOn is true if the flag is given.
	isOn bool
}

// errUnguarded is the error of a program whose profiles everybody could read.
var errUnguarded = errors.New("--pprof is for readers with a permission: give it --listen-secure, such as :8443, " +
	"which the part secure.New() brings")

// Declare returns the flag --pprof: see [feature.Feature].
func (p *profilePages) Declare(program *feature.Program) (feature.Declaration, error) {
	p.program = program
	return feature.Declaration{
		Flags: []feature.Flag{{
			Name: "pprof", Set: feature.SetBool(&p.isOn),
			Help: "serve profiles at " + path + " there, for go tool pprof. It needs --listen-secure. " +
				"A dump of the heap, which holds Secrets, is not among them",
		}},
		Check: p.check,
	}, nil
}

// check returns an error if everybody could read the profiles.
func (p *profilePages) check() ([]kube.Access, error) {
	pages := p.program.Pages
	if p.isOn && !pages.IsChecked && (pages.Address != "" || p.program.Command == "run") {
		return nil, errUnguarded
	}
	return nil, nil
}

// Install returns an error if everybody could read the profiles in a cluster.
func (p *profilePages) Install(*feature.Plan) error {
	if p.isOn && !p.program.Pages.IsChecked {
		return errUnguarded
	}
	return nil
}

// Start adds the profiles to the pages of the program if the flag is given.
func (p *profilePages) Start(_ context.Context, h *feature.Host) error {
	if !p.isOn {
		return nil
	}
	for pattern, serve := range handlers() {
		if err := h.AddPage("GET "+path+pattern, serve); err != nil {
			return err
		}
	}
	h.Runtime.Log.Info("serving profiles", "path", path)
	return nil
}

// UnreadyReasons returns nothing: a program without its profiles does its work.
func (*profilePages) UnreadyReasons() []string { return nil }

// End does nothing: the program ends its pages.
func (*profilePages) End() {}
