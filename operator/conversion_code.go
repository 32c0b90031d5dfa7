package operator

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"

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

// conversionCodePart is a part that brings the [conversionCode]: each [converterPart].
type conversionCodePart interface{ conversionCode() conversionCode }

// conversionCode acts for all conversions of a program. A program without a converter has no code for them: see part_code.go.
type conversionCode interface {
	// openConversions returns the conversions of all converters of the program, which steps are.
	openConversions(defines []kube.Type, steps []*conversion.Step) (conversionService, error)
	migrate(ctx context.Context, m migrator, o options, needs kube.Needs) error
}

// conversionCodeIn returns the code that parts bring, or an error if the program has no converter.
func conversionCodeIn(parts []Part) (conversionCode, error) {
	for _, part := range partsWithin(parts) {
		if p, ok := part.(conversionCodePart); ok {
			return p.conversionCode(), nil
		}
	}
	return nil, errors.New("the program has no converter, so it has no versions to migrate: add operator.Convert to its parts, also for versions with equal fields")
}

// linkedConversionCode makes each part that embeds it a [conversionCodePart].
type linkedConversionCode struct{}

func (linkedConversionCode) conversionCode() conversionCode { return &programConversionCode{} }

// programConversionCode implements [conversionCode].
type programConversionCode struct{}

// openConversions returns the conversions of the kinds among defines that steps are for.
func (*programConversionCode) openConversions(defines []kube.Type, steps []*conversion.Step) (conversionService, error) {
	byKind := make(map[string][]*conversion.Step) // by the text of the kind: a further type to sort makes programs larger
	for _, s := range steps {
		gk := s.First.Resource.GroupKind().String()
		byKind[gk] = append(byKind[gk], s)
	}
	c := &conversions{}
	var errs []error
	for _, gk := range slices.Sorted(maps.Keys(byKind)) {
		kind, err := newConvertedKind(byKind[gk][0].First.Resource.GroupKind(), defines, byKind[gk])
		errs = append(errs, err)
		c.kinds = append(c.kinds, kind)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// migrate does what [migrator.run] does.
func (*programConversionCode) migrate(ctx context.Context, m migrator, o options, needs kube.Needs) error {
	return m.run(ctx, o, needs)
}

// newConvertedKind returns a kind with all its versions among defines.
func newConvertedKind(gk schema.GroupKind, defines []kube.Type, steps []*conversion.Step) (*conversion.Kind, error) {
	var versions []conversion.Version
	isKnown := make(map[string]bool)
	var errs []error
	for _, t := range defines {
		if t.Definition == nil || t.Resource.GroupKind() != gk || isKnown[t.Go.String()+t.Go.PkgPath()] {
			continue
		}
		isKnown[t.Go.String()+t.Go.PkgPath()] = true
		v, err := conversion.VersionOf(t)
		errs = append(errs, err)
		versions = append(versions, v)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return conversion.NewKind(versions, steps)
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
