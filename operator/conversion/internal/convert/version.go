package convert

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/jsonscan/kubejson"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Version is a version of a kind.
type Version struct {
	// Resource names the kind and the version.
	Resource wire.Resource
	// Schema is the schema of the whole object. A kept value goes back only if the value fits this schema. Nothing is
	// checked if Schema is nil.
	Schema *crd.Schema
	// HasScale is true if the version has the subresource scale.
	HasScale bool
	// Served is true if the API server serves the version.
	Served bool
	// Storage is true for the storage version: the API server stores objects in it. A kind has one storage version.
	Storage bool
}

// VersionOf returns the version that is the Go type t, with the schema that package crd makes of the type. The version
// is the storage version only if the Definition sets Storage. Errors: those of [crd.From].
func VersionOf(t kube.Type) (Version, error) {
	definition := *t.Definition
	definition.Source, definition.OtherSources = nil, nil // nobody reads the descriptions, and parsing takes time
	isStorage, isServed, hasScale := definition.Storage, !definition.NotServed, definition.Scale != nil
	definition.NotServed = false // a CustomResourceDefinition needs a version that is served
	t.Definition = &definition
	all, err := crd.From(t)
	if err != nil {
		return Version{}, err
	}
	return Version{
		Resource: t.Resource, Schema: all[0].Spec.Versions[0].Schema.OpenAPIV3Schema, HasScale: hasScale, Served: isServed,
		Storage: isStorage,
	}, nil
}

// codec decodes and encodes the objects of a Go type.
type codec struct {
	// newObject returns a pointer to a new object.
	newObject func() any
}

// decode returns an object with the content of a text. It decodes as [kube.Unmarshal] does, in less time.
func (c codec) decode(text []byte) (any, error) {
	object := c.newObject()
	return object, kubejson.Decode(text, object)
}

// encode returns the JSON of an object.
func (codec) encode(object any) ([]byte, error) { return kube.Marshal(object) }

// encodeWithoutZeros returns the JSON of an object without all zero fields.
func (codec) encodeWithoutZeros(object any) ([]byte, error) {
	return json.Marshal(object, jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), json.OmitZeroStructFields(true))
}
