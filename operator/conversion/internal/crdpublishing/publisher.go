// Package crdpublishing keeps the field spec.conversion of the CustomResourceDefinitions whose objects a program
// converts. API servers find the program by that field.
//
// Each replica publishes, also a standby: the start of a leader can need conversions. All replicas apply the whole of
// spec.conversion under one field manager, and no other field. So a CustomResourceDefinition that somebody applies
// without a bundle keeps its bundle. If somebody removes or replaces the field, it is right again within 10 seconds.
//
// Once no object needs a conversion, and no managedFields have an old version, the command migrate gives up the field
// for the program: see [GiveUp]. A later release without a converter could not be applied otherwise.
//
// The conversion belongs to the Service that the field names. A program of another Service does not write the field
// while the Namespace of that Service exists. For example, the programs shop/webapp and test/webapp are installed, and
// the field names shop/webapp:
//
//	the Namespace shop   test/webapp
//	exists               logs that, and does not write
//	is gone              writes the field, with its own Service
//
// The command uninstall of shop/webapp sets the annotation [manifests.SuccessorAnnotation] to test/webapp. Then test/webapp
// writes the field too, with its own Service and bundle, although the Namespace shop exists.
package crdpublishing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// Config describes a [Publisher]. All fields but ServesOne and UseSchemas are required.
type Config struct {
	// Paths are the paths at the Target where the conversions are served, by the names of the CustomResourceDefinitions,
	// such as cronjobs.batch.example.com.
	Paths map[string]string
	// ServesOne has the names of the CustomResourceDefinitions of which the program serves one version alone.
	ServesOne map[string]bool
	// Target is where the conversions are served, without a CABundle.
	Target configuration.Target
	// BundleFor returns the bundle to publish where another bundle is published, which may be empty. It returns nothing
	// while there is nothing to publish. It is called concurrently.
	BundleFor func(published []byte) []byte
	// Changed returns a channel that is closed when BundleFor returns something else. It is called before BundleFor.
	Changed func() <-chan struct{}
	// Client sends all requests. Its field manager is that of the field spec.conversion. It has no cache, and does not
	// pass the fence of a leader.
	Client *kube.Client
	Log    *slog.Logger
	// UseSchemas gets the schemas of the versions of a CustomResourceDefinition, by the names of the versions, each time
	// they may have changed. It is called concurrently for different names.
	UseSchemas func(definition string, schemas map[string]*crd.Schema)
}

// Publisher keeps the conversions of one program published. [Publisher.Run] does the work. A Publisher is safe for
// concurrent use.
type Publisher struct {
	config      Config
	definitions []*convertedDefinition
}

// New returns a Publisher, which does nothing before [Publisher.Run] runs. Errors: a field of c that is missing.
func New(c Config) (*Publisher, error) {
	switch {
	case len(c.Paths) == 0:
		return nil, errors.New("the program converts no kinds: set Paths in the Config")
	case c.Target.URL == "" && (c.Target.ServiceNamespace == "" || c.Target.ServiceName == ""):
		return nil, errors.New("the conversions have no address: set the URL, or the namespace and the name of a Service")
	case c.BundleFor == nil || c.Changed == nil || c.Client == nil || c.Log == nil:
		return nil, errors.New("a field of the Config of the conversions is nil")
	}
	p := &Publisher{config: c}
	for _, name := range slices.Sorted(maps.Keys(c.Paths)) {
		d := newConvertedDefinition(name, c.Client)
		d.useSchemas, d.servesOne = c.UseSchemas, c.ServesOne[name]
		p.definitions = append(p.definitions, d)
	}
	return p, nil
}

// Run keeps the conversions as they should be, until ctx ends. Then it returns nil. Problems are logged, each once in a
// row. Run must be called once.
func (p *Publisher) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, d := range p.definitions {
		running.Go(func() { newKeeper(p.config, d).run(ctx) })
	}
	running.Wait()
	return nil
}

// Ready returns nil if each CustomResourceDefinition that exists has the conversion of this program. Otherwise it
// returns the reason why not. A CustomResourceDefinition that does not exist is no reason, and neither is the
// conversion of another installation: a new replica must become ready in both cases.
func (p *Publisher) Ready() error {
	for _, d := range p.definitions {
		switch lastKnown := d.shown.Load(); {
		case lastKnown == nil:
			return fmt.Errorf("the %s has not been read yet; the log has the reason", d)
		case lastKnown.exists() && d.needsConversion(lastKnown) && !lastKnown.isOfOtherService(p.config.Target) &&
			!p.isPublished(lastKnown):
			return fmt.Errorf("the %s does not have the bundle of this program in spec.conversion yet; the log has the reason",
				d)
		}
	}
	return nil
}

// isPublished reports whether a CustomResourceDefinition has the conversion that it should have.
func (p *Publisher) isPublished(lastKnown *object) bool {
	bundle := p.config.BundleFor(lastKnown.bundle())
	return len(bundle) > 0 && lastKnown.Spec.Conversion.isEqual(newConversion(p.config, lastKnown.Metadata.Name, bundle))
}

// Status is the state of the conversion of a CustomResourceDefinition, for metrics.
type Status struct {
	// Name is the name of the CustomResourceDefinition.
	Name string
	// IsPublished is true if the CustomResourceDefinition has the conversion of this program, with its bundle, or needs no
	// conversion.
	IsPublished bool
	// IsElsewhere is true while another installation converts the objects.
	IsElsewhere bool
	// StorageVersion is the version in which objects are stored, and PreferredVersion is the version that kubectl and the
	// controllers of Kubernetes use. StoredVersions are those in which objects may be stored. They are empty while the
	// CustomResourceDefinition does not exist or was not read.
	StorageVersion, PreferredVersion string
	StoredVersions                   []string
}

// Status returns the Status of each CustomResourceDefinition.
func (p *Publisher) Status() (all []Status) {
	for _, d := range p.definitions {
		lastKnown := d.shown.Load()
		s := Status{Name: d.Name, IsElsewhere: d.isElsewhere.Load()}
		if lastKnown != nil {
			s.IsPublished = lastKnown.exists() && !d.needsConversion(lastKnown) || p.isPublished(lastKnown)
			s.StorageVersion, s.PreferredVersion, s.StoredVersions = lastKnown.storageVersion(), lastKnown.preferredVersion(),
				lastKnown.Status.StoredVersions
		}
		all = append(all, s)
	}
	return all
}

// Publish publishes the conversion of the CustomResourceDefinition of a name once, and reports whether that changed the
// CustomResourceDefinition. It is for tests, where no other program writes the field. Call it instead of Run.
func (p *Publisher) Publish(ctx context.Context, name string) (isChanged bool, err error) {
	for _, d := range p.definitions {
		if d.Name != name {
			continue
		}
		k := newKeeper(p.config, d)
		k.object.NeedsRead = true
		err = k.correct(ctx)
		return k.hasWritten, err
	}
	return false, fmt.Errorf("the program does not convert the objects of %s", name)
}

// Access returns the permissions that a [Publisher] needs for the CustomResourceDefinitions of these names. The
// Namespace of another installation can have any name.
func Access(names []string) []kube.Access {
	return []kube.Access{
		{
			Resource: manifests.DefinitionResource(), Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch, wire.VerbPatch},
			Names: names,
		},
		{Resource: manifests.NamespaceResource(), Verbs: []wire.Verb{wire.VerbGet}},
	}
}
