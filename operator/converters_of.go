package operator

import (
	"context"
	"log/slog"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/metrics"
	"github.com/yare-go/yare/operator/internal/migration"
	"github.com/yare-go/yare/operator/internal/webhook/configuration"
	"github.com/yare-go/yare/operator/internal/webhook/conversion"
)

// conversionPart is a part of [Convert]. It has the code for all conversions of a program. A program finds it by this
// interface alone. So the linker leaves the code out of a program without one.
type conversionPart interface {
	converter() *conversion.Step
	conversionCode() conversionCode
}

// conversionCode acts for all conversions of a program.
type conversionCode interface {
	// openConversions returns the conversions of all converters of the program, which steps are.
	openConversions(defines []kube.Type, steps []*conversion.Step) (conversionService, error)
	migrate(ctx context.Context, m migrator, o options, needs kube.Needs) error
}

// conversionService converts the objects of all kinds of a program that have converters.
type conversionService interface {
	// access returns the permissions that the program needs to publish its conversions.
	access() []kube.Access
	// addTo adds spec.conversion to the CustomResourceDefinitions among the objects of an installation, and the policies of
	// incomplete objects. The last object is the Deployment.
	addTo(objects []manifests.Object, service, namespace string) []manifests.Object
	// check returns an error if the apply of the definitions would make calls fail. firstStep is the command that installs
	// the program without definitions.
	check(ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition, service, namespace, firstStep string) error
	// checkIncomplete returns an error with the objects that would be incomplete in a version which the definitions begin to
	// serve or to store.
	checkIncomplete(ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition) error
	// startHandler returns a handler of the conversions, which passes all other calls on to next. It registers the metrics of the
	// conversions. It is called once.
	startHandler(next http.Handler, log *slog.Logger, registry *metrics.Registry) (http.Handler, error)
	// newPublisher returns what publishes the conversions. It registers the metrics of the publication. It is called once.
	newPublisher(s conversionSettings) (conversionPublisher, error)
	// publishInTest serves the conversions in the process of a test until the cluster ends, and publishes them. It returns
	// when API servers convert by them.
	publishInTest(ctx context.Context, client *kube.Client, log *slog.Logger) error
	// countObjects counts the objects for the metrics, until ctx ends.
	countObjects(ctx context.Context, s objectCountSettings)
	// warnOfVersions logs a warning for each controller that does not use the stored version of its kind.
	warnOfVersions(reconciled []wire.Resource, log *slog.Logger)
	// fieldConverter returns what moves managedFields between the versions of a kind. It returns nil for a kind without a
	// converter.
	fieldConverter(kind schema.GroupKind) migration.FieldConverter
	// giveUp removes what the program owns of spec.conversion of a CustomResourceDefinition that it converts objects of,
	// unless objects may have to be converted for users. It reports whether there was something to remove.
	giveUp(ctx context.Context, client *kube.Client, definition string) (bool, error)
	// wait waits for the calls in flight, or until ctx ends.
	wait(ctx context.Context) error
}

// conversionSettings are where conversions are served.
type conversionSettings struct {
	target    configuration.Target
	bundleFor func(published []byte) []byte
	changed   func() <-chan struct{}
	// client does not pass the fence of the leader election, because each replica publishes.
	client   *kube.Client
	log      *slog.Logger
	registry *metrics.Registry
}

// conversionPublisher publishes the conversions of a program.
type conversionPublisher interface {
	// Run publishes until ctx ends.
	Run(ctx context.Context) error
	// Ready returns nil, or why the replica is not ready.
	Ready() error
}

// conversionsOf returns the conversions of parts, or nil if there are none. The error names everything that is wrong with
// the converters.
func conversionsOf(parts []Part) (conversionService, error) {
	var code conversionCode
	var steps []*conversion.Step
	var defines []kube.Type
	for _, part := range parts {
		if part == nil {
			continue
		}
		needs, err := part.Needs()
		if err != nil {
			continue // needsOf reports it
		}
		defines = append(defines, needs.Defines...)
		if p, ok := unwrapped[conversionPart](part); ok {
			code = p.conversionCode() // that of each part acts for all parts
			steps = append(steps, p.converter())
		}
	}
	if code == nil {
		return nil, nil
	}
	return code.openConversions(defines, steps)
}

// convertedKinds returns the kinds for which parts have a converter.
func convertedKinds(parts []Part) map[schema.GroupKind]bool {
	kinds := make(map[schema.GroupKind]bool)
	for _, part := range parts {
		if p, ok := unwrapped[conversionPart](part); ok {
			kinds[p.converter().First.Resource.GroupKind()] = true
		}
	}
	return kinds
}

// unwrapped returns part, or a part inside of it, as a T.
func unwrapped[T any](part Part) (found T, ok bool) {
	for part != nil {
		if found, ok = part.(T); ok {
			return found, true
		}
		wrapper, isWrapper := part.(interface{ Unwrap() Part })
		if !isWrapper {
			break
		}
		part = wrapper.Unwrap()
	}
	return found, false
}
