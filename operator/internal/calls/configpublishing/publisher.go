package configpublishing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/calls/followed"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// Config describes a [Publisher]. All fields but Labels, Namespace, Deployment, Validating, Mutating, Probe, Elected, Reachable,
// Ending and Contested are required.
type Config struct {
	// Name is the name of both configurations.
	Name string
	// Labels are the labels of a configuration that is made.
	Labels map[string]string
	// Namespace is the namespace of the installation, which becomes the owner of the configurations. If it is empty, they
	// have no owner.
	Namespace string
	// Deployment is the name of the Deployment of the installation. If it is empty, the Publisher looks at none.
	Deployment string
	// Validating and Mutating are the entries of both configurations, without a CABundle. Both are empty for a program with
	// conversions alone. Then the leader removes the entries of an earlier release.
	Validating, Mutating []*configuration.Entry
	// Target is where the webhooks are served, without a CABundle. With a URL the leader makes a configuration that is
	// missing. With a Service only an installation makes it.
	Target configuration.Target
	// Probe is the name of the objects that probes are about: see [configuration.Probe]. If it is not empty, each
	// configuration has an entry for probes.
	Probe string
	// BundleFor returns the bundle to publish where another bundle is published, which may be empty. It returns nothing
	// while there is nothing to publish. It is called concurrently.
	BundleFor func(published []byte) []byte
	// Changed returns a channel that is closed when BundleFor returns something else. It is called before BundleFor.
	Changed func() <-chan struct{}
	// Leader sends the writes of the leader, and refuses them after the term of the leader. Replica sends all other
	// requests, at any time. Both reach the server: they have no cache.
	Leader, Replica *kube.Client
	// Leads reports whether this replica leads. Elected is closed when it begins to lead. A nil Elected is for a program
	// without an election, which leads from the beginning.
	Leads   func() bool
	Elected <-chan struct{}
	// Reachable is closed when API servers can reach this replica by its Service. Before, the leader adds no entry. A nil
	// Reachable is for a replica that can be reached from the beginning.
	Reachable <-chan struct{}
	// Ending is closed when the program begins to end, and still serves. A nil Ending is for a program whose end is that
	// of Run.
	Ending <-chan struct{}
	// Contested gets the fields that were set back.
	Contested *contested.Reporter
	Log       *slog.Logger
}

// Publisher keeps the configurations of one program. [Publisher.Run] does the work in one replica. A Publisher is safe
// for concurrent use.
type Publisher struct {
	config Config
	// configurations are those of validators and of defaulters.
	configurations [2]*programConfiguration
	// isReady is true once Ready has returned nil.
	isReady atomic.Bool
}

// programConfiguration is one of the two configurations of a program.
type programConfiguration struct {
	followed.Reference[object]
	// entries are the entries that the leader publishes, without a bundle. Without entries the program does not need
	// the configuration.
	entries []*configuration.Entry
	// lastKnown is the configuration as the keeper knows it, or nil if it was not read yet.
	lastKnown atomic.Pointer[object]
	removed   removedPaths
}

// recordLastKnown records the configuration as the keeper knows it now. target is where the program is served.
func (c *programConfiguration) recordLastKnown(lastKnown *object, target configuration.Target) {
	if c.lastKnown.Swap(lastKnown) == lastKnown {
		return
	}
	paths := make(map[string]string)
	for _, e := range lastKnown.Webhooks {
		if e.isFor(target) {
			paths[e.fields.Name] = e.path()
		}
	}
	c.removed.record(paths)
}

// New returns a Publisher, which does nothing before [Publisher.Run] runs. It returns an error if a field of c is
// missing.
func New(c Config) (*Publisher, error) {
	switch {
	case c.Name == "":
		return nil, errors.New("the webhook configurations have no name: set Name in the Config")
	case c.BundleFor == nil || c.Changed == nil || c.Leader == nil || c.Replica == nil || c.Leads == nil || c.Log == nil:
		return nil, fmt.Errorf(
			"a field of the Config of the webhook configuration %s is nil: only Elected, Reachable, Ending and Contested may be nil",
			c.Name)
	}
	c.Target.CABundle = nil
	p := &Publisher{config: c}
	for i, entries := range [][]*configuration.Entry{c.Validating, c.Mutating} {
		resource := manifests.WebhookConfigurationResources()[i]
		if c.Probe != "" && len(entries) > 0 {
			entries = append(entries, configuration.Probe(c.Target, resource.Kind, c.Probe))
		}
		p.configurations[i] = &programConfiguration{
			Reference: followed.ReferenceTo[object](resource, kube.Key{Name: c.Name}), entries: entries,
		}
	}
	return p, nil
}

// Run keeps the configurations as they should be, until ctx ends. Then it removes the entries of a program whose
// Deployment is gone, which takes 5 s at most, and returns nil. Problems are logged, each once in a row. Run must be
// called once.
func (p *Publisher) Run(ctx context.Context) error {
	newKeeper(p.config, p.configurations).run(ctx)
	return nil
}

// Ready returns nil if the configurations that the program needs were read, and if each entry in them that is for this
// program has its bundle. Otherwise it returns the reason why not. Once the Publisher is ready, it stays ready: a
// replica can answer under an older bundle, and an entry that has lost its bundle does not get it back because replicas
// are unready.
func (p *Publisher) Ready() error {
	if p.isReady.Load() {
		return nil
	}
	for _, c := range p.configurations {
		if len(c.entries) == 0 {
			continue
		}
		lastKnown := c.lastKnown.Load()
		if lastKnown == nil {
			return fmt.Errorf("the %s has not been read yet; the log has the reason", c)
		}
		for _, e := range lastKnown.Webhooks {
			if e.isFor(p.config.Target) && !p.isPublished(e) {
				return fmt.Errorf("the %s does not have the bundle of this program in its entry %s yet; the log has the reason",
					c, e.fields.Name)
			}
		}
	}
	p.isReady.Store(true)
	return nil
}

// isPublished reports whether an entry has the bundle that it should have.
func (p *Publisher) isPublished(e entry) bool {
	bundle := p.config.BundleFor(e.bundle())
	return len(bundle) > 0 && bytes.Equal(bundle, e.bundle())
}

// Status is the state of a configuration, for metrics.
type Status struct {
	// Kind is ValidatingWebhookConfiguration or MutatingWebhookConfiguration.
	Kind string
	// Exists is false also while the configuration was not read.
	Exists bool
	// IsPublished is true if the configuration has entries for this program, and if each of them has its bundle.
	IsPublished bool
	// ForeignExpressions is the number of entries for this program in which others exclude objects by a selector.
	ForeignExpressions int
}

// Status returns the Status of each configuration that the program needs.
func (p *Publisher) Status() []Status {
	var all []Status
	for _, c := range p.configurations {
		if len(c.entries) == 0 {
			continue
		}
		s := Status{Kind: c.Resource.Kind}
		if lastKnown := c.lastKnown.Load(); lastKnown != nil {
			s.Exists = lastKnown.exists()
			own, published := 0, 0
			for _, e := range lastKnown.Webhooks {
				if !e.isFor(p.config.Target) {
					continue
				}
				own++
				if hasForeignExpressions(&e.fields) {
					s.ForeignExpressions++
				}
				if p.isPublished(e) {
					published++
				}
			}
			s.IsPublished = own > 0 && own == published
		}
		all = append(all, s)
	}
	return all
}

// IsRemoved reports whether the replica has seen an entry of the program with a path, and the entry was removed less
// than 40 s ago. API servers may still call the path.
func (p *Publisher) IsRemoved(path string) bool {
	return slices.ContainsFunc(p.configurations[:], func(c *programConfiguration) bool { return c.removed.contains(path) })
}

// OtherHosts returns the hosts of the entries of the configurations that API servers call by a URL of another process.
func (p *Publisher) OtherHosts(ctx context.Context) (hosts []string, err error) {
	for _, c := range p.configurations {
		if len(c.entries) == 0 {
			continue
		}
		o, err := c.Read(ctx, p.config.Replica)
		if err != nil {
			return nil, err
		}
		for _, e := range o.Object.Webhooks {
			host := hostOf(e.fields.ClientConfig.URL)
			if host != "" && host != hostOf(p.config.Target.URL) && !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts, nil
}

// maxDeletions is how often Remove tries to delete a configuration while others write it.
const maxDeletions = 5

// Remove deletes the configurations if their entries are for this program. It is for development and tests, where the
// webhooks end with the process. Call it after the end of Run.
func (p *Publisher) Remove(ctx context.Context) error {
	var problems []error
	for _, c := range p.configurations {
		problems = append(problems, p.remove(ctx, c))
	}
	return errors.Join(problems...)
}

func (p *Publisher) remove(ctx context.Context, c *programConfiguration) error {
	for range maxDeletions {
		o, err := c.Read(ctx, p.config.Replica)
		if err != nil {
			return err
		}
		isOwn := false
		for _, e := range o.Object.Webhooks {
			isOwn = isOwn || e.isFor(p.config.Target)
		}
		if !isOwn {
			return nil
		}
		if err := deleteConfiguration(ctx, c.Reference, p.config.Replica, o.Object); !followed.IsOutdated(err) {
			return err
		}
	}
	return fmt.Errorf("the %s is changed again and again while it should be deleted: delete it", c)
}

// Access returns the permissions that a [Publisher] needs for the configurations of a name, and for the Namespace and
// the Deployment of the installation, which may be empty. All are by name. A configuration that the program does not
// need is followed too, because an earlier release may have left entries in it. No permission is to create a
// configuration: only an installation makes one.
//
// API servers with the admission plugin OwnerReferencesPermissionEnforcement let only users with the verb delete set an
// owner of an object. So the leader needs the verb delete to make the Namespace the owner. In development and in tests
// [Publisher.Remove] deletes the configurations.
func Access(name, namespace, deployment string) []kube.Access {
	var all []kube.Access
	for _, r := range manifests.WebhookConfigurationResources() {
		verbs := []wire.Verb{wire.VerbList, wire.VerbWatch, wire.VerbPatch, wire.VerbDelete}
		all = append(all, kube.Access{Resource: r, Verbs: verbs, Names: []string{name}})
	}
	if namespace != "" {
		all = append(all, kube.Access{
			Resource: manifests.NamespaceResource(), Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch},
			Names: []string{namespace},
		})
	}
	if deployment != "" {
		all = append(all, followed.DeploymentAccess(deployment))
	}
	return all
}
