// Package crd makes a CustomResourceDefinition of a Go type: the type is the schema, and
// what Go cannot say stands in a struct tag or in the [kube.Definition].
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
// Nothing asks a server. What a server would refuse is, where that can be told cheaply, an
// error that names the Go type, the field and the tag; all errors of a type are told at
// once. What only a server can tell is whether a CEL rule compiles, and whether it is too
// expensive: put maxItems, maxLength and maxProperties on what a rule iterates over.
//
// # Types
//
// A field is what encoding/json makes of it: its name comes from the json tag, which must
// be there; embedded structs without a name are inlined; fields that are not exported or
// tagged json:"-" are left out. Maps need string keys. Known by what they are in JSON are
// time.Time and the types Time, MicroTime, Duration, Condition, LabelSelector and
// ObjectMeta of metav1, resource.Quantity, intstr.IntOrString, runtime.RawExtension,
// json.RawMessage, json.Number, any, and types with MarshalText and UnmarshalText, which
// are strings. Types of k8s.io/api, such as corev1.PodTemplateSpec, are structs like
// others; their lists are atomic, and they have no descriptions. A list of
// metav1.Condition is a map by type.
//
// A type that encodes itself in another way has to say as what: by a method
// OpenAPISchemaType() []string, and perhaps OpenAPISchemaFormat() string; or each field
// does, by crd:"type=string". That tag also ends a recursion, which a schema cannot
// express: crd:"type=object" takes any fields.
//
// # Required
//
// A field is required if the encoder always writes a value for it. So it is optional with
// omitempty or omitzero; if its zero value is null in JSON, because it is a pointer, a
// slice, a map, any, a metav1.Time or a RawExtension (a server drops a null where it is not
// allowed, and would then miss the field in an object that came straight from its struct);
// and if it has a default. The tags required and optional overrule this. A status is never
// required. In types of k8s.io the same rule holds, for reflection does not see their
// comments: containers of a PodSpec are optional here, until the Pod is created.
//
// # The crd tag
//
// Keys are separated by commas. A value may stand in single quotes, and must if it has a
// comma in it; a quote inside is written twice. In a struct tag a backslash is written \\.
//
//	required, optional        overrule the rule above
//	default=3                 the value of a missing field; JSON for lists and structs
//	nullable                  null is kept; not with an enum
//	enum=a|b|c                the values there are
//	minimum=0 maximum=10      bounds of a number
//	exclusiveMinimum=0        a bound that is not allowed itself; so exclusiveMaximum.
//	                          Without a value it goes with the minimum before it
//	multipleOf=5
//	minLength=1 maxLength=63  characters of a string
//	pattern='^[a-z]+$'        a regular expression
//	format=uri                one of those that a server checks; others are an error
//	minItems=1 maxItems=9     of a list
//	listType=map              atomic (the default of a server), set, or map
//	listMapKey=name           a field of the items that is required or has a default; may
//	                          be repeated
//	minProperties=1 maxProperties=9 mapType=atomic
//	                          of a map or struct
//	preserveUnknownFields     keeps fields that the struct does not have
//	embeddedResource          the object has apiVersion, kind and metadata
//	type=string               instead of what the Go type says: string, integer, number,
//	                          boolean, object (of any fields), int-or-string, any
//	rule='self > 0'           a rule in CEL; may be repeated
//	message='must be positive'
//	                          what to say when the rule before it does not hold
//	column, column=Name       a column of kubectl get; without a name the JSON name with a
//	                          capital
//	wide                      the column is for kubectl get -o wide
//
// items. before a key puts it on the elements of a list, values. on those of a map, as in
// items.minLength=1 or items.values.enum=a|b. Lists, maps and structs within other structs
// get defaults only when what is around them is there: tag that default='{}'.
//
// Rules about several fields of a struct are returned by its method Rules() []kube.Rule;
// rules about the whole object are the Definition's.
//
// # Descriptions
//
// A program cannot see its own comments, so a [kube.Definition] may bring the files that
// its types are declared in, as Source:
//
//	//go:embed main.go
//	var source embed.FS
//
// The files are taken for the package of the type that has the Definition, and must hold
// every type of that package that the resource uses. A field's comment describes the
// field; where there is none, the comment of its type does. The whole object is described
// by the comment of the alias type WebApp = kube.CustomResource[…], or of the struct that
// wraps another module's type. Lines of a paragraph are joined; lines that begin with +,
// and directives such as go: and nolint, are left out. Types of other packages have no
// descriptions.
package crd
