// Package crd makes a CustomResourceDefinition of a Go type. The type is the schema. What Go
// cannot express is in a struct tag or in the [kube.Definition].
//
//	type WebAppSpec struct {
//		// Image is the container image to run.
//		Image string `json:"image" crd:"minLength=1,column"`
//		// Replicas is how many pods should run.
//		Replicas int32 `json:"replicas" crd:"minimum=0"`
//	}
//
//	definition, err := crd.Of[WebApp]()
//	err = crd.WriteYAML(os.Stdout, definition)
//
// No server is needed. A type that a server would refuse is an error here. The error names the Go
// type, the field and the tag, and the file and the line if the Definition has its Source. All errors
// of a type are reported together. Only a server can decide whether a CEL rule compiles, and whether
// it is too expensive: put maxItems, maxLength and maxProperties on the lists, strings and maps that a
// rule iterates over.
//
// # Types
//
// The fields of an object are the fields of encoding/json. A field has the name of its json tag,
// which is required. The fields of embedded structs without a name belong to the struct
// around them. Fields that are not exported, or tagged json:"-", are left out. Maps have
// string keys.
//
// These types have the schema of their JSON: time.Time; the types Time, MicroTime, Duration,
// Condition, LabelSelector and ObjectMeta of metav1; resource.Quantity; intstr.IntOrString;
// runtime.RawExtension; json.RawMessage; json.Number; any; and types with MarshalText and
// UnmarshalText, which are strings. Types of k8s.io/api, such as corev1.PodTemplateSpec, are
// structs like others, without descriptions. Their lists have the types and keys, and their fields
// the defaults, that an API server has for them: the containers of a PodSpec are a map by name, and
// the protocol of a port is TCP by default. A list of metav1.Condition is a map by type.
//
// Any other type that encodes itself needs a tag with its type in JSON, such as type=string, or
// type=struct if its JSON has the fields of the struct. The tag belongs to the type (see below) or to
// each field, as in crd:"type=string" and, for a list, crd:"items.type=string". A method
// OpenAPISchemaType() []string, with or without OpenAPISchemaFormat() string, does the same. A schema
// cannot be recursive: end a recursion with crd:"type=object" or crd:"items.type=object", which
// accepts any fields.
//
// # Required
//
// A field is required if the encoder always writes a value for it. It is optional in these
// cases:
//
//   - It has omitempty or omitzero.
//   - It belongs to a struct embedded by a pointer, which may be nil.
//   - Its zero value is null in JSON: a pointer, a slice, a map, any, a metav1.Time or a
//     RawExtension. In a POST or a PUT a server drops a null where it is not allowed. The server
//     would then miss the field in an object that came straight from its struct. A server-side
//     apply of such a null is refused, unless the field has a default.
//   - It has a default.
//
// The tags required and optional overrule this. A status is never required. The rule also
// holds for types of k8s.io, because reflection does not see their comments: the containers of
// a PodSpec are optional here, until the Pod is created.
//
// # The crd tag
//
// Keys are separated by commas. A value may be in single quotes, and must be if it contains a
// comma. A quote inside is written twice. In a struct tag a backslash is written \\.
//
//	required, optional        overrule the rule above
//	default=3                 the value of a missing field; JSON for lists and structs; null
//	                          is possible for a field that is nullable. A client that applies
//	                          the value itself owns it: a new default does not reach its objects
//	nullable                  null is kept; not with an enum, for keys of a list, or for
//	                          items of a set
//	enum=a|b|c                the possible values. If the field is optional, leave "" out, which
//	                          generators of clients lose: see [Warnings]
//	minimum=0 maximum=10      bounds of a number, which the format of the field can hold. A bound is a
//	                          float64: the greatest of an int64 is 9223372036854774784
//	exclusiveMinimum=0        a bound that is not allowed itself; likewise exclusiveMaximum.
//	                          Without a value it goes with the minimum before it
//	multipleOf=5
//	minLength=1 maxLength=63  characters of a string
//	pattern='^[a-z]+$'        a regular expression
//	format=uri                a format that servers check; others are an error
//	minItems=1 maxItems=9     of a list
//	listType=map              atomic (the default of a server), set, or map
//	listMapKey=name           a field of the items that is required or has a default, and is
//	                          not nullable; may be repeated
//	minProperties=1 maxProperties=9 mapType=atomic
//	                          of a map or struct
//	exactlyOneOf=a|b          a struct has one of the fields, which are optional and have no default;
//	                          likewise atMostOneOf and atLeastOneOf. Each becomes a rule in CEL
//	preserveUnknownFields     keeps fields that the struct does not have. Most generated clients
//	                          drop them: keep them in a field of the type map[string]any instead
//	embeddedResource          the object has apiVersion, kind and metadata
//	type=string               replaces the schema of the Go type: string, integer, number,
//	                          boolean, object (of any fields), int-or-string, any; or struct,
//	                          the fields of a type that encodes itself
//	rule='self > 0'           a rule in CEL; may be repeated
//	message='must be positive'
//	                          the error if the rule before it does not hold
//	column, column=Name       a column of kubectl get; without a name the JSON name with a
//	                          capital letter
//	wide                      the column is for kubectl get -o wide
//	selectable                field selectors can name the field, as in kubectl get
//	                          --field-selector=spec.color=red; see KEP-4358
//	acceptLoss                no warning about what generators of clients lose of the field, or of
//	                          what it has of types of other modules: see [Warnings]
//
// The prefix items. applies a key to the elements of a list, and values. to the values of a map,
// as in items.minLength=1, values.type=string or items.values.enum=a|b. Lists, maps and structs
// within a struct get their defaults only if that struct is present: tag it default='{}'.
//
// A type can have a tag too, which holds for all of its values. A method CRDTag returns it:
//
//	type Port int32
//
//	func (Port) CRDTag() string { return "minimum=1,maximum=65535" }
//
// It has the keys that describe values, and not required, optional, column, wide, selectable and acceptLoss.
// The method of an embedded type does not describe the struct around it. If a struct that embeds such
// a type has a method of its own, the two methods must return different texts.
//
// Fields of types of other modules get their tags by path, from the Tags of the Definition:
//
//	Tags: map[string]string{
//		".spec.issuerRef.name":    "minLength=1",
//		".spec.ports[*].protocol": "enum=TCP|UDP",
//	}
//
// All these tags count. Where they have the same key, the tag of the field overrules the tag by
// path, and the tag by path overrules the tag of the type. Rules in CEL are added to each other.
// A key type=… other than struct, in the tag of a field or a path, replaces the Go type together
// with its tag.
//
// A method Rules() []kube.Rule of a type, such as a struct or a named string, returns rules in
// CEL for its values. Rules for the whole object are in the Definition.
//
// # Descriptions
//
// A program cannot read its own comments. A [kube.Definition] may therefore have the files
// that declare its types, as Source:
//
//	//go:embed main.go
//	var source embed.FS
//
// Source must contain every file that declares a type of the resource in the package of the
// type with the Definition. Test files and files of other packages are ignored. The comment of
// a field describes the field. A field without a comment has the description of its type. The
// whole object has the comment of the alias type WebApp = kube.CustomResource[…], or of the
// struct that wraps a type of another module. The lines of a paragraph are joined. Lines that
// begin with +, and directives such as go: and nolint, are left out.
//
// A file can be embedded only by its own package. Other packages with types of the resource
// therefore export their files, and the Definition names them by import path:
//
//	OtherSources: map[string]fs.FS{"example.com/operator/api": api.Source},
//
// Types of packages without a source have no descriptions.
package crd
