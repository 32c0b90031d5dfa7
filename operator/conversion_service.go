package operator

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
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/metrics"
	"github.com/yare-go/yare/operator/internal/migration"
	"github.com/yare-go/yare/operator/internal/webhook/configuration"
	"github.com/yare-go/yare/operator/internal/webhook/conversion"
	"github.com/yare-go/yare/operator/internal/webhook/crdpublishing"
)

// conversionService converts the objects of all kinds of a program that have converters.
type conversionService interface {
	// access returns the permissions that the program needs to publish its conversions.
	access() []kube.Access
	// addTo adds spec.conversion to the CustomResourceDefinitions among the objects of an installation, and the policies
	// of incomplete objects. The last object is the Deployment.
	addTo(objects []manifests.Object, service, namespace string) []manifests.Object
	// checkApply returns an error if the apply of the definitions would make calls fail. firstStep is the command that
	// installs the program without definitions.
	checkApply(
		ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition,
		service, namespace, firstStep string,
	) error
	// checkIncomplete returns an error with the objects that would be incomplete in a version which the definitions begin
	// to serve or to store.
	checkIncomplete(ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition) error
	// makeHandler makes a handler of the conversions, which passes all other calls on to next. It registers the metrics of
	// the conversions. It is called once.
	makeHandler(next http.Handler, log *slog.Logger, registry *metrics.Registry) (http.Handler, error)
	// makePublisher makes what publishes the conversions, and registers the metrics of the publication. It is called once,
	// after makeHandler.
	makePublisher(s conversionSettings) (conversionPublisher, error)
	// publishInTest serves the conversions in the process of a test until the cluster ends, and publishes them. It returns
	// when API servers convert by them.
	publishInTest(ctx context.Context, client *kube.Client, log *slog.Logger) error
	// countObjects counts the objects for the metrics, until ctx ends.
	countObjects(ctx context.Context, counter objectCounter)
	// warnOfVersions logs a warning for each controller that does not use the storage version of its kind.
	warnOfVersions(reconciled []wire.Resource, log *slog.Logger)
	// fieldConverter returns what moves managedFields between the versions of a kind. It returns nil for a kind without a
	// converter.
	fieldConverter(kind schema.GroupKind) migration.FieldConverter
	// giveUp removes what the program owns of spec.conversion of a CustomResourceDefinition that it converts objects of,
	// unless objects may have to be converted for users. It reports whether there was something to remove.
	giveUp(ctx context.Context, client *kube.Client, definition string) (bool, error)
	// finishCalls returns when the calls in flight have ended, or ctx has.
	finishCalls(ctx context.Context) error
}

// conversionSettings are what the publisher of conversions needs: where they are served, and the client.
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

// programConversions implements [conversionService].
type programConversions struct {
	kinds []*conversion.Kind
	// handler is nil before makeHandler.
	handler *conversion.Handler
	// publisher is nil before makePublisher.
	publisher *crdpublishing.Publisher
}

// paths returns the paths of the conversions, by the names of the CustomResourceDefinitions.
func (c *programConversions) paths() map[string]string {
	paths := make(map[string]string)
	for _, k := range c.kinds {
		paths[definitionName(k)] = k.Path()
	}
	return paths
}

// singleVersionDefinitions returns the names of the CustomResourceDefinitions of which the program serves one version
// alone.
func (c *programConversions) singleVersionDefinitions() map[string]bool {
	names := make(map[string]bool)
	for _, k := range c.kinds {
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

// access returns the permissions to publish the conversions, and to follow the objects for the metrics.
func (c *programConversions) access() []kube.Access {
	all := crdpublishing.Access(slices.Sorted(maps.Keys(c.paths())))
	for _, k := range c.kinds { // countObjects follows the objects. RBAC knows no versions
		all = append(all,
			kube.Access{Resource: storageVersion(k).Resource, Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch}})
	}
	return all
}

// addTo adds spec.conversion without a bundle: the program adds the bundle, and no later apply of the objects removes
// it.
func (c *programConversions) addTo(objects []manifests.Object, service, namespace string) []manifests.Object {
	paths := c.paths()
	for _, o := range objects {
		metadata, _ := o["metadata"].(manifests.Object)
		name, _ := metadata["name"].(string)
		spec, _ := o["spec"].(manifests.Object)
		if path := paths[name]; path != "" && spec != nil && manifests.Kind(o) == "CustomResourceDefinition" {
			spec["conversion"] = manifests.Object{"strategy": "Webhook", "webhook": manifests.Object{
				"clientConfig": manifests.Object{"service": manifests.Object{
					"namespace": namespace, "name": service, "path": path, "port": int64(manifests.WebhookPort),
				}},
				"conversionReviewVersions": []any{"v1"},
			}}
		}
	}
	var resources []schema.GroupResource
	for _, k := range c.kinds {
		r := k.Versions()[0].Resource
		resources = append(resources, schema.GroupResource{Group: r.Group, Resource: r.Plural})
	}
	name := manifests.ClusterName(service, namespace) + "-incomplete"
	policies := incompletePolicy(name, resources)
	for _, k := range c.kinds {
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

// checkApply returns an error if the apply of definitions would make calls fail that need a conversion.
func (c *programConversions) checkApply(
	ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition,
	service, namespace, firstStep string,
) error {
	target := configuration.Target{ServiceName: service, ServiceNamespace: namespace}
	paths := c.paths()
	var errs []error
	for _, d := range definitions {
		if paths[d.Metadata.Name] != "" {
			errs = append(errs, crdpublishing.Check(ctx, client, d.Metadata.Name, target, d.Spec.Versions, firstStep))
		}
	}
	return errors.Join(errs...)
}

// makeHandler makes the handler of the conversions with its metrics. It is called once.
func (c *programConversions) makeHandler(
	next http.Handler, log *slog.Logger, registry *metrics.Registry,
) (http.Handler, error) {
	var err error
	c.handler, err = conversion.NewHandler(c.kinds,
		conversion.Options{Logger: log, Observer: newConversionMetrics(registry, c.kinds)})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.handler.HasPath(r.URL.Path) {
			c.handler.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}), err
}

// makePublisher makes the publisher of the conversions with its metrics. It is called once.
func (c *programConversions) makePublisher(s conversionSettings) (conversionPublisher, error) {
	p, err := crdpublishing.New(crdpublishing.Config{
		Paths: c.paths(), ServesOne: c.singleVersionDefinitions(), Target: s.target, BundleFor: s.bundleFor,
		Changed: s.changed, Log: s.log,
		Client: s.client.WithFieldManager(conversionManager(s.client)), UseSchemas: c.useSchemasAfter(schemaDelay),
	})
	if err == nil {
		c.publisher = p
		registerPublishedConversions(s.registry, p.Status)
	}
	return p, err
}

// schemaDelay is how long an API server may take at most to see a CustomResourceDefinition that somebody has changed.
const schemaDelay = 10 * time.Second

// useSchemasAfter returns a function that makes the conversions of a kind use the schemas of the cluster after a delay.
func (c *programConversions) useSchemasAfter(
	delay time.Duration,
) func(definition string, schemas map[string]*crd.Schema) {
	paths := c.paths()
	return func(definition string, schemas map[string]*crd.Schema) {
		c.handler.UseSchemas(paths[definition], schemas, delay)
	}
}

// countObjects counts the objects of all kinds until ctx ends.
func (c *programConversions) countObjects(ctx context.Context, counter objectCounter) {
	counter.countObjects(ctx, c.kinds, func() []crdpublishing.Status {
		if c.publisher == nil {
			return nil
		}
		return c.publisher.Status()
	})
}

// warnOfVersions logs a warning for each kind of reconciled that has another storage version.
func (c *programConversions) warnOfVersions(reconciled []wire.Resource, log *slog.Logger) {
	for _, r := range reconciled {
		for _, k := range c.kinds {
			if storage := storageVersion(k).Resource; r.GroupKind() == k.GroupKind() && r.Version != storage.Version {
				log.Warn("a controller does not use the version in which its objects are stored: each object costs a conversion at each start and for each write",
					"kind", k.GroupKind().String(), "version", r.Version, "stored", storage.Version)
			}
		}
	}
}

// checkIncomplete returns what the function [checkIncomplete] returns for all kinds.
func (c *programConversions) checkIncomplete(
	ctx context.Context, client *kube.Client, definitions []*crd.CustomResourceDefinition,
) error {
	return checkIncomplete(ctx, client, c.kinds, definitions)
}

// fieldConverter returns the converter of managedFields for a kind, or nil for a kind without conversions.
func (c *programConversions) fieldConverter(kind schema.GroupKind) migration.FieldConverter {
	for _, k := range c.kinds {
		if k.GroupKind() == kind {
			return migration.NewFieldConverter(plainConverter{k})
		}
	}
	return nil
}

// giveUp removes what the program owns of spec.conversion of a CustomResourceDefinition. See [crdpublishing.GiveUp].
func (c *programConversions) giveUp(ctx context.Context, client *kube.Client, definition string) (bool, error) {
	if c.paths()[definition] == "" {
		return false, nil
	}
	return crdpublishing.GiveUp(ctx, client.WithFieldManager(conversionManager(client)), definition,
		c.singleVersionDefinitions()[definition])
}

// definitionName returns the name of the CustomResourceDefinition of k.
func definitionName(k *conversion.Kind) string { return k.Versions()[0].Resource.String() }

// storageVersion returns the storage version of k.
func storageVersion(k *conversion.Kind) conversion.Version {
	for _, v := range k.Versions() {
		if v.Storage {
			return v
		}
	}
	return k.Versions()[0]
}

// plainConverter converts objects without the annotations of conversions: nobody who applies an object owns these.
type plainConverter struct{ kind *conversion.Kind }

// Convert returns an object in another version, for [migration.Converter].
func (c plainConverter) Convert(object []byte, version string) ([]byte, error) {
	converted, err := c.kind.Convert(object, version)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := kube.Unmarshal(converted.Object, &content); err != nil {
		return nil, err
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			maps.DeleteFunc(annotations, func(key string, _ any) bool { return conversion.IsOwnAnnotation(key) })
			if len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
	}
	return kube.Marshal(content)
}

// conversionManager returns the field manager of spec.conversion in a program with a client.
func conversionManager(c *kube.Client) string { return c.FieldManager() + "-conversion" }

// finishCalls returns when the calls in flight have ended, or ctx has.
func (c *programConversions) finishCalls(ctx context.Context) error {
	if c.handler == nil {
		return nil
	}
	return c.handler.Wait(ctx)
}

// publishInTest publishes the conversions for the cluster of a test. See [sharedTestConversionServer].
func (c *programConversions) publishInTest(ctx context.Context, client *kube.Client, log *slog.Logger) error {
	s, err := sharedTestConversionServer(ctx)
	if err != nil {
		return err
	}
	return s.publish(ctx, client, c, log)
}

// publishTime is how long the publication of conversions may take at most in a test and in yare dev.
const publishTime = 30 * time.Second

// waitForPublication waits until the conversions are published. API servers convert by them a moment later.
func waitForPublication(ctx context.Context, p conversionPublisher) error {
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	for {
		err := p.Ready()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(probeInterval):
		case <-ctx.Done():
			return fmt.Errorf("the conversions of the program are not published after %s: %w", publishTime, err)
		}
	}
}
