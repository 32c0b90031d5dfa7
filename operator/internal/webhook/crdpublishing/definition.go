package crdpublishing

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Resource returns the resource of CustomResourceDefinitions.
func Resource() wire.Resource {
	return wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		Plural:           "customresourcedefinitions", ClusterScoped: true,
	}
}

// Access returns the permissions that a [Publisher] needs for the CustomResourceDefinitions of these names. The Namespace of
// another installation can have any name.
func Access(names []string) []kube.Access {
	return []kube.Access{
		{Resource: Resource(), Verbs: []wire.Verb{wire.VerbList, wire.VerbWatch, wire.VerbPatch}, Names: names},
		{Resource: namespaces(), Verbs: []wire.Verb{wire.VerbGet}},
	}
}

// namespaces returns the resource of Namespaces.
func namespaces() wire.Resource {
	return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces", ClusterScoped: true}
}

// definition is a CustomResourceDefinition in the cluster.
type definition struct {
	name   string
	client *kube.Client
	// servesOne is true if the program serves one version of the kind alone.
	servesOne bool
	// live is the CustomResourceDefinition as far as known. It is nil before the CustomResourceDefinition was read.
	live atomic.Pointer[object]
	// useSchemas gets the schemas of the versions when they change. It may be nil.
	useSchemas func(name string, schemas map[string]*crd.Schema)
}

func newDefinition(name string, client *kube.Client) *definition {
	return &definition{name: name, client: client}
}

// setLive records a state of the CustomResourceDefinition, without the schemas. It is called by one goroutine.
func (d *definition) setLive(o *object) {
	before := d.live.Load()
	schemas := make(map[string]*crd.Schema)
	for i, v := range o.Spec.Versions {
		if v.Schema != nil {
			schemas[v.Name] = v.Schema.OpenAPIV3Schema
			o.Spec.Versions[i].Schema = nil
		}
	}
	isNew := before == nil || before.Metadata.UID != o.Metadata.UID || before.Metadata.Generation != o.Metadata.Generation
	if d.useSchemas != nil && o.exists() && isNew {
		d.useSchemas(d.name, schemas)
	}
	d.live.Store(o)
}

// String returns the kind and the name.
func (d *definition) String() string { return "CustomResourceDefinition " + d.name }

// needsConversion reports whether objects of the live CustomResourceDefinition may have to be converted for users. A
// CustomResourceDefinition with one version gets a further one only after the conversion. For example, these are the releases of
// docs/guide/versions.md with the CustomResourceDefinition of another release:
//
//	B, which serves v1 and v2, with that of A (v1)     true: v2 comes next
//	D, which serves v2,        with that of E (v2)     false: v1 has gone
func (d *definition) needsConversion(live *object) bool {
	if len(live.Spec.Versions) == 1 {
		return !d.servesOne
	}
	return live.needsConversion()
}

// watch calls observe with each state of the CustomResourceDefinition, or with an error of the watch, which then goes on.
// It ends when ctx ends.
func (d *definition) watch(ctx context.Context, observe func(*object, error)) {
	for state, err := range follow.Object(ctx, d.client, d.stream()) {
		o := &object{}
		if err == nil && state.Object != nil {
			err = kube.Unmarshal(state.Object, o)
		}
		if !o.exists() {
			o.Metadata.ResourceVersion = state.ResourceVersion
		}
		observe(o, err)
	}
}

// read reads the CustomResourceDefinition as the server has it. The request is a list, because a watch needs this permission
// anyway.
func (d *definition) read(ctx context.Context) error {
	r := d.stream().Request(wire.VerbList)
	r.Live = true
	response, err := d.client.Do(ctx, r)
	if err != nil {
		return err
	}
	var list struct {
		Items []*object `json:"items"`
	}
	if err := kube.Unmarshal(response.Body, &list); err != nil || len(list.Items) > 1 {
		return fmt.Errorf("the answer to a list of the %s is not that of a Kubernetes API", d)
	}
	d.setLive(append(list.Items, new(object))[0])
	return nil
}

// stream returns the stream that has the CustomResourceDefinition alone.
func (d *definition) stream() wire.Stream {
	return wire.Stream{Resource: Resource(), FieldSelector: "metadata.name=" + d.name}
}

// apply applies the conversion of the live CustomResourceDefinition. With nil it gives up all fields that it owns. It fails
// if the CustomResourceDefinition was deleted or has changed meanwhile: another installation may have taken the conversion over.
func (d *definition) apply(ctx context.Context, wanted *conversion) error {
	live := d.live.Load()
	var sent struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		object
	}
	r := Resource()
	sent.APIVersion, sent.Kind = r.GroupVersion().String(), r.Kind
	sent.Metadata.Name, sent.Metadata.UID, sent.Metadata.ResourceVersion = d.name, live.Metadata.UID, live.Metadata.ResourceVersion
	sent.Spec.Conversion = wanted
	body, err := kube.Marshal(&sent)
	if err != nil {
		return err
	}
	request := &wire.Request{
		Verb: wire.VerbPatch, Resource: r, Name: d.name, ContentType: wire.ContentApply, Body: body,
		Query:         map[string][]string{"fieldManager": {d.client.FieldManager()}, "force": {"true"}},
		Preconditions: wire.Preconditions{UID: live.Metadata.UID, ResourceVersion: live.Metadata.ResourceVersion},
	}
	response, err := d.client.Do(ctx, request)
	if err != nil {
		return err
	}
	o := new(object)
	if err := kube.Unmarshal(response.Body, o); err != nil {
		return fmt.Errorf("the %s is not that of a Kubernetes API: %w", d, err)
	}
	d.setLive(o)
	return nil
}

// hasNamespace reports whether a Namespace exists.
func (d *definition) hasNamespace(ctx context.Context, name string) (bool, error) {
	_, err := d.client.Do(ctx, &wire.Request{
		Verb: wire.VerbGet, Resource: namespaces(), Name: name, Representation: wire.MetadataOnly, Live: true,
	})
	if kube.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// GiveUp removes what a program owns of spec.conversion of the CustomResourceDefinition of a name, unless objects may have to be
// converted for users. It reports whether there was something to remove. Call it when no managedFields are left in a version that
// is not served. Otherwise each write of such an object would fail. The program does not publish again until an old version is
// served again. client has the field manager of the conversion.
func GiveUp(ctx context.Context, client *kube.Client, name string) (hadConversion bool, err error) {
	d := newDefinition(name, client)
	if err := d.read(ctx); err != nil {
		return false, fmt.Errorf("read the %s: %w", d, err)
	}
	live := d.live.Load()
	if !live.exists() || d.needsConversion(live) || !live.isManagedBy(client.FieldManager()) {
		return false, nil
	}
	return true, d.apply(ctx, nil)
}
