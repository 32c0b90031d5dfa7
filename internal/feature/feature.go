// Package feature has what a program asks of a feature, and what the program lends to it. A feature is a package of its
// own, such as the live page. It adds flags and pages to the programs that import it, and code to no others.
//
// A program finds a feature by a part, which is a [Bringer]. The import goes from the feature to package operator,
// never back. The table of names.txt says which package brings which flag, for the errors of programs that do not
// import it.
//
//	interface    methods                                         who has it
//	Feature      Declare, Install, Start, UnreadyReasons, End     each feature
//	Observer     Observe                                         the live page
package feature

import (
	"context"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// Feature is something that only some programs have. The methods are called in the order in which they stand here.
// Each but UnreadyReasons is called once at most. Install and Start are called for the features in the order of names.txt,
// and End in the opposite order. Declare and Install send no request.
type Feature interface {
	// Declare returns the flags of the feature. The flags are not set yet. The feature may keep p, which is complete when
	// Check of the declaration is called.
	Declare(p *Program) Declaration
	// Install adds to p what an installation has because of the feature, or returns what is wrong with the flags of an
	// installation.
	Install(p *Plan) error
	// Start begins to serve by what h lends, before the parts of the program start. ctx ends when the parts have ended.
	// The pages of h are served until a second later. An error ends the program.
	Start(ctx context.Context, h *Host) error
	// UnreadyReasons returns why the program is not ready. Several goroutines call it at any time after Declare.
	UnreadyReasons() []string
	// End ends the feature. The program has released its lease, and serves no page. End is called at the end of a program
	// that runs, also if Start was not called or has failed.
	End()
}

// Observer is a [Feature] that observes the reconciles.
type Observer interface {
	// Observe returns the observer of all controllers. It passes what it receives to next. It returns next if the flags do
	// not ask for the feature. It is called once, before Start.
	Observe(next controller.Observer) controller.Observer
}

// Bringer is a part that brings a feature.
type Bringer interface {
	// Feature returns the feature for one run of the program.
	Feature() Feature
}

// Declaration is what a feature adds to the command line.
type Declaration struct {
	// Package is the package of the feature in names.txt, such as operator/livepage.
	Package string
	// Flags are the flags of the feature. A flag that names.txt lacks is not accepted.
	Flags []Flag
	// Check returns the permissions that the flags need, or what is wrong with the flags together. It is called once all
	// flags of all features are set, for the features in the order of names.txt. It may change the Pages of the program. It
	// must not be nil.
	Check func() ([]kube.Access, error)
}

// Flag is a flag of a feature.
type Flag struct {
	Name string
	// Set sets the value to what the command line has.
	Set func(text string) error
	// Help is the text about the flag.
	Help string
}
