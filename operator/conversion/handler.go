package conversion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/conversion/internal/convert"
	"github.com/yare-go/yare/operator/conversion/internal/crdpublishing"
	"github.com/yare-go/yare/operator/internal/calls"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// handler answers the calls by which API servers convert the objects of a program, and publishes the conversions.
type handler struct {
	program *feature.Program
	kinds   []*convert.Kind
	// converter is nil before Prepare.
	converter *convert.Handler
	// publisher is nil before Prepare, if somebody else publishes the conversions, and in tests.
	publisher *crdpublishing.Publisher
}

// Declare returns the command migrate and the kinds: see [calls.Handler].
func (h *handler) Declare() feature.Declaration {
	m := &migrator{handler: h}
	d := feature.Declaration{Flags: m.flags(), Commands: []feature.Command{m.command()}}
	for _, k := range h.kinds {
		d.Converted = append(d.Converted, k.GroupKind())
	}
	return d
}

// paths returns the paths of the conversions, by the names of the CustomResourceDefinitions.
func (h *handler) paths() map[string]string {
	paths := make(map[string]string)
	for _, k := range h.kinds {
		paths[definitionName(k)] = k.Path()
	}
	return paths
}

// singleVersionDefinitions returns the names of the CustomResourceDefinitions of which the program serves one version
// alone.
func (h *handler) singleVersionDefinitions() map[string]bool {
	names := make(map[string]bool)
	for _, k := range h.kinds {
		served := 0
		for _, v := range k.Versions() {
			if v.Served {
				served++
			}
		}
		if served == 1 {
			names[definitionName(k)] = true
		}
	}
	return names
}

// Access returns the permissions to publish the conversions, and to follow the objects for the metrics.
func (h *handler) Access() []kube.Access {
	all := crdpublishing.Access(slices.Sorted(maps.Keys(h.paths())))
	for _, k := range h.kinds { // countObjects follows the objects. RBAC knows no versions
		all = append(all,
			kube.Access{Resource: storageVersion(k).Resource, Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch}})
	}
	return all
}

// AddTo adds spec.conversion without a bundle: the program adds the bundle, and no later apply of the objects removes
// it.
func (h *handler) AddTo(objects []manifests.Object, i manifests.Installation) []manifests.Object {
	paths := h.paths()
	for _, o := range objects {
		metadata, _ := o["metadata"].(manifests.Object)
		name, _ := metadata["name"].(string)
		spec, _ := o["spec"].(manifests.Object)
		if path := paths[name]; path != "" && spec != nil && manifests.Kind(o) == "CustomResourceDefinition" {
			spec["conversion"] = manifests.Object{"strategy": "Webhook", "webhook": manifests.Object{
				"clientConfig": manifests.Object{"service": manifests.Object{
					"namespace": i.Namespace, "name": i.Name, "path": path, "port": int64(manifests.WebhookPort),
				}},
				"conversionReviewVersions": []any{"v1"},
			}}
		}
	}
	var resources []schema.GroupResource
	for _, k := range h.kinds {
		r := k.Versions()[0].Resource
		resources = append(resources, schema.GroupResource{Group: r.Group, Resource: r.Plural})
	}
	name := manifests.ClusterName(i.Name, i.Namespace) + "-incomplete"
	policies := incompletePolicy(name, resources)
	for _, k := range h.kinds {
		for _, v := range k.Versions() {
			if v.HasScale && v.Served {
				policies = append(policies,
					incompleteScalePolicy(name+"-scale."+v.Resource.Version+"."+v.Resource.String(), v.Resource)...)
			}
		}
	}
	last := len(objects) - 1 // the Deployment
	return slices.Insert(objects, last, policies...)
}

// CheckDefinitions returns an error if the apply of definitions would make calls fail that need a conversion, or would
// make objects incomplete: see [calls.Checker].
func (h *handler) CheckDefinitions(
	ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition, i manifests.Installation,
	isServed bool,
) error {
	errs := []error{checkIncomplete(ctx, client, h.kinds, definitions)}
	target := configuration.Target{ServiceName: i.Name, ServiceNamespace: i.Namespace}
	paths := h.paths()
	for _, d := range definitions {
		if isServed && paths[d.Metadata.Name] != "" {
			errs = append(errs, crdpublishing.Check(ctx, client, d.Metadata.Name, target, d.Spec.Versions,
				i.Program+" manifests --without-definitions"))
		}
	}
	return errors.Join(errs...)
}

// CheckObjects returns nil: see [calls.Checker].
func (*handler) CheckObjects(context.Context, *kube.Client, manifests.Installation, func(string)) error {
	return nil
}

// Prepare makes what converts the objects and, unless somebody else publishes the conversions, their publisher: see
// [calls.Handler].
func (h *handler) Prepare(s *calls.Service) (err error) {
	log := s.Host.Runtime.Log
	h.converter, err = convert.NewHandler(h.kinds,
		convert.Options{Logger: log, Observer: newConversionMetrics(s.Metrics, h.kinds)})
	if err != nil {
		return err
	}
	if s.Program.IsStrict {
		h.warnOfVersions(s.Program.Needs.Reconciles, log)
	}
	if !s.IsPublishedByProgram || s.Program.IsTest {
		return nil
	}
	h.publisher, err = crdpublishing.New(crdpublishing.Config{
		Paths: h.paths(), ServesOne: h.singleVersionDefinitions(), Target: s.Target, BundleFor: s.BundleFor,
		Changed: s.Changed, Log: log,
		Client: s.Client.WithFieldManager(conversionManager(s.Client)), UseSchemas: h.useSchemasAfter(schemaDelay),
	})
	if err == nil {
		registerPublishedConversions(s.Metrics, h.publisher.Status)
	}
	return err
}

// HasPath reports whether a path is that of the conversion of a kind.
func (h *handler) HasPath(path string) bool { return h.converter.HasPath(path) }

// ServeHTTP answers a call.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.converter.ServeHTTP(w, r) }

// Start begins to publish the conversions, and to count the objects for the metrics. In a test and in yare dev, it
// returns when the conversions are published: objects must not be read before API servers convert them.
func (h *handler) Start(ctx context.Context, s *calls.Service) error {
	if h.publisher != nil {
		s.Go(h.publisher.Run)
		if s.Program.IsStrict {
			if err := waitForPublication(ctx, h.publisher); err != nil {
				return err
			}
		}
	}
	if s.Host.Metrics != nil {
		s.Go(func(context.Context) error {
			objectCounter{h, s}.countObjects(ctx)
			return nil
		})
	}
	if !s.Program.IsTest {
		return nil
	}
	server, err := sharedTestServer(ctx)
	if err != nil {
		return err
	}
	return server.publish(ctx, s.Client, h, s.Host.Runtime.Log)
}

// published returns the states of the CustomResourceDefinitions. It returns none in a program that does not publish the
// conversions.
func (h *handler) published() []crdpublishing.Status {
	if h.publisher == nil {
		return nil
	}
	return h.publisher.Status()
}

// Ready returns nil, or which conversion is not published.
func (h *handler) Ready() error {
	if h.publisher == nil {
		return nil
	}
	return h.publisher.Ready()
}

// Wait returns when the calls in flight have ended, or the error of ctx.
func (h *handler) Wait(ctx context.Context) error { return h.converter.Wait(ctx) }

// schemaDelay is how long an API server may take at most to see a CustomResourceDefinition that somebody has changed.
const schemaDelay = 10 * time.Second

// useSchemasAfter returns a function that makes the conversions of a kind use the schemas of the cluster after a delay.
func (h *handler) useSchemasAfter(
	delay time.Duration,
) func(definition string, schemas map[string]*crd.Schema) {
	paths := h.paths()
	return func(definition string, schemas map[string]*crd.Schema) {
		h.converter.UseSchemas(paths[definition], schemas, delay)
	}
}

// warnOfVersions logs a warning for each kind of reconciled that has another storage version.
func (h *handler) warnOfVersions(reconciled []wire.Resource, log *slog.Logger) {
	for _, r := range reconciled {
		for _, k := range h.kinds {
			if storage := storageVersion(k).Resource; r.GroupKind() == k.GroupKind() && r.Version != storage.Version {
				log.Warn("a controller does not use the version in which its objects are stored: each object costs a conversion at each start and for each write",
					"kind", k.GroupKind().String(), "version", r.Version, "stored", storage.Version)
			}
		}
	}
}

// definitionName returns the name of the CustomResourceDefinition of k.
func definitionName(k *convert.Kind) string { return k.Versions()[0].Resource.String() }

// storageVersion returns the storage version of k.
func storageVersion(k *convert.Kind) convert.Version {
	for _, v := range k.Versions() {
		if v.Storage {
			return v
		}
	}
	return k.Versions()[0]
}

// conversionManager returns the field manager of spec.conversion in a program with a client.
func conversionManager(c *kube.Client) string { return c.FieldManager() + "-conversion" }

// publishTime is how long the publication of conversions may take at most in a test and in yare dev.
const publishTime = 30 * time.Second

// waitForPublication waits until the conversions are published. API servers convert by them a moment later.
func waitForPublication(ctx context.Context, p *crdpublishing.Publisher) error {
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	for {
		err := p.Ready()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(calls.ProbeInterval):
		case <-ctx.Done():
			return fmt.Errorf("the conversions of the program are not published after %s: %w", publishTime, err)
		}
	}
}
