// Package profiles serves the profiles of a running program, for go tool pprof.
//
//	operator.Main(controller.New(reconcile), secure.New(), profiles.New())
package profiles

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// path is where the profiles are.
const path = "/debug/pprof/"

// New returns a part that adds the flag --pprof. With this flag the program serves the profiles of package net/http/pprof
// below /debug/pprof/. Without the flag the part does nothing.
//
// The flag needs --listen-secure of package secure. A reader needs the permission to get the path, such as
// /debug/pprof/heap, as a nonResourceURL. A profile has the names of functions, and sizes and times. It has no contents of
// objects: a dump of the heap, which holds Secrets, is not served.
//
// The part adds 0.6 MB to a program. An import of net/http/pprof adds the profiles to [http.DefaultServeMux]. Package
// operator does not serve that mux, and an author must not.
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
	if p.program.Command != "run" && p.program.Pages.Address == "" {
		return nil, nil // the Install of package secure may give an address
	}
	return nil, p.Install(nil)
}

// Install returns an error if everybody could read the profiles.
func (p *profilePages) Install(*feature.Plan) error {
	if p.isOn && !p.program.Pages.IsChecked {
		return errors.New("--pprof is for readers with a permission: give it --listen-secure, such as :8443, " +
			"which the part secure.New() brings")
	}
	return nil
}

// Start adds the profiles to the pages of the program if the flag is given.
func (p *profilePages) Start(_ context.Context, h *feature.Host) error {
	if !p.isOn {
		return nil
	}
	h.Runtime.Log.Info("serving profiles", "path", path)
	return errors.Join(h.AddPage("GET "+path, http.HandlerFunc(pprof.Index)),
		h.AddPage("GET "+path+"profile", http.HandlerFunc(pprof.Profile)),
		h.AddPage("GET "+path+"trace", http.HandlerFunc(pprof.Trace)))
}

// UnreadyReasons returns nothing: a program without its profiles does its work.
func (*profilePages) UnreadyReasons() []string { return nil }

// End does nothing: the program ends its pages.
func (*profilePages) End() {}
