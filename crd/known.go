package crd

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/yare-go/yare/kube"
)

const metaPackage = "k8s.io/apimachinery/pkg/apis/meta/v1"

// Patterns of types whose text a server does not know. They accept nothing that the decoders
// of the types refuse.
const (
	quantityPattern  = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`
	microTimePattern = `\.[0-9]{6}(Z|[+-][0-9]{2}:[0-9]{2})$`
	durationPattern  = `^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
)

// qualified returns the full name of a type. Well-known types are recognized by their name: an
// import would link them into every operator.
func qualified(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// schemaOfWellKnown returns the schema of a type whose JSON differs from its Go declaration.
func schemaOfWellKnown(t reflect.Type) (s *Schema, isKnown bool, err error) {
	switch qualified(t) {
	case "time.Time", metaPackage + ".Time":
		return &Schema{Type: typeString, Format: "date-time"}, true, nil
	case metaPackage + ".MicroTime": // Go reads six digits of a second, and nothing else
		return &Schema{Type: typeString, Format: "date-time", Pattern: microTimePattern}, true, nil
	case "time.Duration":
		return nil, true, errors.New("encoding/json writes a time.Duration as a number of nanoseconds, which is hard to read; use metav1.Duration, which is text such as 5m")
	case metaPackage + ".Duration":
		return &Schema{Type: typeString, Pattern: durationPattern}, true, nil
	case "k8s.io/apimachinery/pkg/util/intstr.IntOrString":
		s, low, top := intOrString(), float64(math.MinInt32), float64(math.MaxInt32)
		s.Minimum, s.Maximum = &low, &top // the Go type has an int32, and a quantity has more
		return s, true, nil
	case "k8s.io/apimachinery/pkg/api/resource.Quantity":
		s := intOrString()
		s.Pattern = quantityPattern
		return s, true, nil
	case "encoding/json.Number":
		return &Schema{Type: typeNumber}, true, nil
	case "encoding/json.RawMessage", "encoding/json/jsontext.Value",
		"github.com/go-json-experiment/json/jsontext.Value",
		"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":
		return &Schema{PreserveUnknownFields: true}, true, nil
	case "k8s.io/apimachinery/pkg/runtime.RawExtension", metaPackage + ".FieldsV1":
		return &Schema{Type: typeObject, PreserveUnknownFields: true}, true, nil
	case metaPackage + "/unstructured.Unstructured":
		return &Schema{Type: typeObject, PreserveUnknownFields: true, EmbeddedResource: true}, true, nil
	case metaPackage + ".ObjectMeta":
		return embeddedMetadata(), true, nil
	}
	return nil, false, nil
}

// intOrString returns the schema of a number or a string.
func intOrString() *Schema {
	return &Schema{IntOrString: true, AnyOf: []*Schema{{Type: typeInteger}, {Type: typeString}}}
}

// embeddedMetadata returns the schema of the metadata of an object within an object, such as
// the template of a Pod, with the fields that an author may set. A server prunes fields that
// the schema does not name.
func embeddedMetadata() *Schema {
	words := func() *Schema {
		return &Schema{Type: typeObject, AdditionalProperties: &Schema{Type: typeString}}
	}
	return &Schema{Type: typeObject, Properties: map[string]*Schema{
		"name":         {Type: typeString},
		"generateName": {Type: typeString},
		"namespace":    {Type: typeString},
		"labels":       words(),
		"annotations":  words(),
		"finalizers":   {Type: typeArray, Items: &Schema{Type: typeString}},
	}}
}

// refine adds to the schema of a well-known struct the rules that reflection cannot see.
func refine(t reflect.Type, s *Schema) {
	switch qualified(t) {
	case metaPackage + ".LabelSelector":
		s.MapType = "atomic"
	case metaPackage + ".Condition":
		limit := func(name string, low, top int64, pattern string) {
			p := s.Properties[name]
			if p == nil {
				return
			}
			if low > 0 {
				p.MinLength = &low
			}
			p.MaxLength, p.Pattern = &top, pattern
		}
		limit("type", 0, 316,
			`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
		limit("reason", 1, 1024, `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
		limit("message", 0, 32768, "")
		for _, status := range []string{`"True"`, `"False"`, `"Unknown"`} {
			s.Properties["status"].Enum = append(s.Properties["status"].Enum, json.RawMessage(status))
		}
		s.Properties["observedGeneration"].Minimum = new(float64)
		s.Required = []string{"lastTransitionTime", "message", "reason", "status", "type"}
	}
}

// isCondition reports whether lists of t are maps by type by the API conventions.
func isCondition(t reflect.Type) bool { return qualified(t) == metaPackage+".Condition" }

// encodesNull reports whether the zero value of t is null in JSON. A server drops a null of a POST or a PUT from a
// field that is not nullable. If such a field were required, an object straight from its Go
// struct would be refused.
func encodesNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	switch qualified(t) {
	case metaPackage + ".Time", metaPackage + ".MicroTime", "k8s.io/apimachinery/pkg/runtime.RawExtension":
		return true
	}
	return false
}

// schemaOfSelfDescribed returns the schema of a type that describes its JSON by methods. The OpenAPI
// generators of Kubernetes call these methods.
func schemaOfSelfDescribed(t reflect.Type) (s *Schema, isDescribed bool, err error) {
	value := reflect.New(t).Interface()
	typer, ok := value.(interface{ OpenAPISchemaType() []string })
	if !ok {
		return nil, false, nil
	}
	names := typer.OpenAPISchemaType()
	if more, ok := value.(interface{ OpenAPIV3OneOfTypes() []string }); ok {
		names = more.OpenAPIV3OneOfTypes()
	}
	switch {
	case len(names) == 2 && slices.Contains(names, typeString) && slices.Contains(names, typeInteger):
		return intOrString(), true, nil
	case len(names) != 1:
		return nil, true, fmt.Errorf("its method OpenAPISchemaType says %q; it must name one type", names)
	}
	s, err = schemaOfTypeKey(names[0])
	if err != nil {
		return nil, true, fmt.Errorf("its method OpenAPISchemaType: %w", err)
	}
	if formatter, ok := value.(interface{ OpenAPISchemaFormat() string }); ok {
		s.Format = formatter.OpenAPISchemaFormat()
	}
	return s, true, nil
}

// schemaOfTypeKey returns the schema for the value of a key type= in a tag.
func schemaOfTypeKey(name string) (*Schema, error) {
	switch name {
	case typeString, typeInteger, typeNumber, typeBoolean:
		return &Schema{Type: name}, nil
	case typeObject:
		// Without properties to keep, a server would prune all of it.
		return &Schema{Type: typeObject, PreserveUnknownFields: true}, nil
	case typeIntOrString:
		return intOrString(), nil
	case typeAny:
		return &Schema{PreserveUnknownFields: true}, nil
	}
	return nil, fmt.Errorf("%q is not one of string, integer, number, boolean, object (of any fields), int-or-string, any, struct (of the fields of the Go type)", name)
}

// encodingKind is how encoding/json encodes a type.
type encodingKind int

const (
	// encodedByKind means that the kind of the Go type decides on the JSON.
	encodedByKind encodingKind = iota
	// encodedAsText means that the type encodes itself as text.
	encodedAsText
	// encodedUnknown means that the type encodes itself in a form that reflection cannot see.
	encodedUnknown
)

// encodingOf returns the encoding of t.
func encodingOf(t reflect.Type) encodingKind {
	p := reflect.PointerTo(t)
	switch {
	case p.Implements(reflect.TypeFor[json.Marshaler]()), p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return encodedUnknown
	case p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) &&
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return encodedAsText
	case p.Implements(reflect.TypeFor[encoding.TextMarshaler]()),
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return encodedUnknown
	default:
		return encodedByKind
	}
}

// rulesOf returns the rules of the method Rules of t, or nil if t has none.
func rulesOf(t reflect.Type) []kube.Rule {
	if ruled, ok := reflect.New(t).Interface().(interface{ Rules() []kube.Rule }); ok {
		return ruled.Rules()
	}
	return nil
}
