// Package feature has what a program asks of a feature, and what the program lends to it. A feature is a package of its
// own, such as the live page. It adds flags, commands and pages to the programs that import it, and code to no others.
//
// A program finds a feature by a part, which is a [Bringer]. The import goes from the feature to package operator,
// never back. The table of names.txt says which package brings which flag and command, for the errors of programs that
// do not import it.
//
//	interface    methods                                         who has it
//	Feature      Declare, Install, Start, UnreadyReasons, End     each feature
//	Observer     Observe                                         the live page
//	Checker      CheckDefinitions, CheckObjects                  the calls of API servers
//	Uninstaller  ResourcesBefore, SecretsAfter                   the calls of API servers
//
// Which command of a program calls which method:
//
//	Declare, and Check of its declaration   each command but help and version. help calls Declare alone
//	Install                                 manifests
//	CheckDefinitions, CheckObjects          manifests with --check
//	Observe, Start, UnreadyReasons, End     run, and operator.Run
//	ResourcesBefore, SecretsAfter           uninstall
//
// Package operator/internal/calls has the calls of API servers. It is the feature of operator/webhook and of
// operator/conversion.
package feature

import (
	"context"
	"io"
	"log/slog"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Feature is something that only some programs have. The methods are called in the order in which they stand here.
// Each but UnreadyReasons is called once at most. Install and Start are called for the features in the order of names.txt,
// and End in the opposite order. Declare and Install send no request.
type Feature interface {
	// Declare returns the flags and the commands of the feature, or what is wrong with the parts that bring it. The flags
	// are not set yet. The feature may keep p, which is complete when Check of the declaration is called.
	Declare(p *Program) (Declaration, error)
	// Install adds to p what an installation has because of the feature, or returns what is wrong with the flags of an
	// installation.
	Install(p *Plan) error
	// Start starts the feature, with what h lends, before the parts of the program start. ctx ends when the parts have ended.
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

// Checker is a [Feature] that looks at the cluster for the flag --check, after Install. client is that of an
// administrator.
type Checker interface {
	// CheckDefinitions returns an error if the apply of the definitions would do harm.
	CheckDefinitions(ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition) error
	// CheckObjects prints what the user should know about the other objects, or returns an error if their apply would do
	// harm.
	CheckObjects(ctx context.Context, client *kube.Client, printNote func(string)) error
}

// Uninstaller is a [Feature] with objects that the command uninstall cannot find, or not in time, by the labels of the
// installation.
type Uninstaller interface {
	// ResourcesBefore returns the resources whose objects have to go before the Deployment. The command changes nothing if
	// the user may not list them.
	ResourcesBefore() []wire.Resource
	// SecretsAfter returns the names of the Secrets that go after the Deployment, with or without labels. name is that of
	// the objects of the installation.
	SecretsAfter(name string) []string
}

// Bringer is a part that brings a feature. Several parts can bring the same feature.
type Bringer interface {
	// FeatureName returns the package of the feature, such as operator/livepage. Parts with the same name bring the same
	// feature.
	FeatureName() string
	// NewFeature returns the feature for one run of the program. It is called for one of the parts with a name.
	NewFeature() Feature
}

// PolicyBringer is a part that brings admission policies, which the command manifests prints. Tests and explorations
// apply them before they start the program.
type PolicyBringer interface {
	// Policies returns the policies and their bindings for an installation in a namespace. The policies concern the
	// watched namespaces. None means all.
	Policies(namespace string, watched []string) []map[string]any
}

// Declaration is what a feature adds to the command line and to the checks of the parts.
type Declaration struct {
	// Flags are the flags of the feature, and Commands are its commands. names.txt must have them.
	Flags    []Flag
	Commands []Command
	// Converted are the kinds whose objects API servers convert between versions by calls to the program.
	Converted []schema.GroupKind
	// Check returns the permissions that the flags need, or what is wrong with the flags together. It is called once, when
	// all flags of all features are set, for the features in the order of names.txt. It may change the Pages of the program. It
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

// Command is a command of a feature.
type Command struct {
	Name string
	// Help is the text about the command. It may have several lines.
	Help string
	// Run runs the command. It is called after the Check of all features.
	Run func(ctx context.Context, c *CommandRun) error
}

// CommandRun is what a program lends to a [Command].
type CommandRun struct {
	// Client has the rights of the user. Server names its server for the user.
	Client *kube.Client
	Server string
	// Name is the name of the objects of the installation, and Namespace is where the program is installed.
	Name, Namespace string
	// IsDryRun is true if the command must change nothing.
	IsDryRun bool
	// Confirm returns an error unless the user agrees.
	Confirm func(context.Context) error
	// Out gets lines for the user.
	Out io.Writer
	Log *slog.Logger
}

// PartsWithin returns parts, and after each of them the parts inside of it. A part such as that of operator.OnEveryReplica
// has another part inside. nil parts are left out. P is operator.Part, which this package cannot import.
func PartsWithin[P any](parts []P) (all []P) {
	for _, part := range parts {
		for any(part) != nil {
			all = append(all, part)
			wrapper, isWrapper := any(part).(interface{ Unwrap() P })
			if !isWrapper {
				break
			}
			part = wrapper.Unwrap()
		}
	}
	return all
}
