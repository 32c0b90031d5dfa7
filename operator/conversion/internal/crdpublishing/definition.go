package crdpublishing

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/followed"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// convertedDefinition is a CustomResourceDefinition whose objects the program converts. It reads and writes the
// CustomResourceDefinition of the cluster.
type convertedDefinition struct {
	followed.Reference[object]
	client *kube.Client
	// servesOne is true if the program serves one version of the kind alone.
	servesOne bool
	// shown is the last known state of the CustomResourceDefinition for other goroutines, without the schemas. It is nil
	// before the CustomResourceDefinition was read.
	shown atomic.Pointer[object]
	// isElsewhere is true while another installation converts the objects.
	isElsewhere atomic.Bool
	// useSchemas gets the schemas of the versions when they change. It may be nil.
	useSchemas func(name string, schemas map[string]*crd.Schema)
}

func newConvertedDefinition(name string, client *kube.Client) *convertedDefinition {
	return &convertedDefinition{
		Reference: followed.ReferenceTo[object](manifests.DefinitionResource(), kube.Key{Name: name}), client: client,
	}
}

// show records a state of the CustomResourceDefinition, without the schemas. It is called by one goroutine. A state
// that is recorded twice has no schemas any more, and is nothing new.
func (d *convertedDefinition) show(o *object) {
	before := d.shown.Load()
	schemas := make(map[string]*crd.Schema)
	for i, v := range o.Spec.Versions {
		if v.Schema != nil {
			schemas[v.Name] = v.Schema.OpenAPIV3Schema
			o.Spec.Versions[i].Schema = nil
		}
	}
	isNew := before == nil || before.Metadata.UID != o.Metadata.UID || before.Metadata.Generation != o.Metadata.Generation
	if d.useSchemas != nil && o.exists() && isNew {
		d.useSchemas(d.Name, schemas)
	}
	d.shown.Store(o)
}

// needsConversion reports whether objects of the CustomResourceDefinition current may have to be converted for users. A
// CustomResourceDefinition with one version gets a further one only after the conversion. For example, these are the
// releases of docs/guide/versions.md with the CustomResourceDefinition of another release:
//
//	B, which serves v1 and v2, with that of A (v1)     true: v2 comes next
//	D, which serves v2,        with that of E (v2)     false: v1 has gone
func (d *convertedDefinition) needsConversion(current *object) bool {
	if len(current.Spec.Versions) == 1 {
		return !d.servesOne
	}
	return current.hasOldVersionInUse()
}

// apply applies the conversion of the CustomResourceDefinition current. It fails if the CustomResourceDefinition was
// deleted or has changed meanwhile: another installation may have taken the conversion over.
func (d *convertedDefinition) apply(
	ctx context.Context, current *object, wanted *conversion,
) (followed.State[object], error) {
	return d.applySpec(ctx, current, spec{Conversion: wanted})
}

// giveUp gives up all fields of the CustomResourceDefinition current that the program owns. It fails as apply does.
func (d *convertedDefinition) giveUp(ctx context.Context, current *object) error {
	_, err := d.applySpec(ctx, current, spec{})
	return err
}

func (d *convertedDefinition) applySpec(
	ctx context.Context, current *object, wanted spec,
) (followed.State[object], error) {
	var sent struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		object
	}
	sent.APIVersion, sent.Kind = d.Resource.GroupVersion().String(), d.Resource.Kind
	sent.Metadata.Name, sent.Metadata.UID, sent.Metadata.ResourceVersion = d.Name, current.Metadata.UID,
		current.Metadata.ResourceVersion
	sent.Spec = wanted
	return d.Write(ctx, d.client, wire.ContentApply, &sent,
		wire.Preconditions{UID: current.Metadata.UID, ResourceVersion: current.Metadata.ResourceVersion})
}

// hasNamespace reports whether a Namespace exists.
func (d *convertedDefinition) hasNamespace(ctx context.Context, name string) (bool, error) {
	_, err := d.client.Do(ctx, &wire.Request{
		Verb: wire.VerbGet, Resource: manifests.NamespaceResource(), Name: name, Representation: wire.MetadataOnly,
		Live: true,
	})
	if kube.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// GiveUp removes what a program owns of spec.conversion of the CustomResourceDefinition of a name, unless objects may
// have to be converted for users. It reports whether there was something to remove. Call it when no managedFields are
// left in a version that is not served. Otherwise each write of such an object would fail. The program does not publish
// again until an old version is served again. client has the field manager of the conversion. servesOne is true if the
// program serves one version of the kind alone.
func GiveUp(ctx context.Context, client *kube.Client, name string, servesOne bool) (hadConversion bool, err error) {
	d := newConvertedDefinition(name, client)
	d.servesOne = servesOne
	state, err := d.Read(ctx, client)
	if err != nil {
		return false, fmt.Errorf("read the %s: %w", d, err)
	}
	current := state.Object
	if !current.exists() || d.needsConversion(current) || !current.isManagedBy(client.FieldManager()) {
		return false, nil
	}
	return true, d.giveUp(ctx, current)
}
