package crd

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"
)

// CustomResourceDefinition is a CustomResourceDefinition of apiextensions.k8s.io/v1, without its
// status and the fields that only a server sets.
type CustomResourceDefinition struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`
}

// WriteYAML writes crds as YAML documents that kubectl apply -f - accepts. Each document begins
// with a line of three dashes. Keys are in alphabetical order, so that equal definitions give
// equal bytes.
func WriteYAML(w io.Writer, crds ...*CustomResourceDefinition) error {
	for _, c := range crds {
		text, err := yaml.Marshal(c)
		if err != nil {
			return fmt.Errorf("write CustomResourceDefinition %s: %w", c.Metadata.Name, err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return fmt.Errorf("write CustomResourceDefinition %s: %w", c.Metadata.Name, err)
		}
	}
	return nil
}

// WriteJSON writes crds as indented JSON documents that kubectl apply -f - accepts.
func WriteJSON(w io.Writer, crds ...*CustomResourceDefinition) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	for _, c := range crds {
		if err := encoder.Encode(c); err != nil {
			return fmt.Errorf("write CustomResourceDefinition %s: %w", c.Metadata.Name, err)
		}
	}
	return nil
}

// Metadata names a CustomResourceDefinition.
type Metadata struct {
	// Name is plural and group, as in webapps.example.com.
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Spec is one resource with all of its versions.
type Spec struct {
	Group string `json:"group"`
	Names Names  `json:"names"`
	// Scope is Namespaced or Cluster.
	Scope string `json:"scope"`
	// Versions are in the order of their priority, the highest first.
	Versions []Version `json:"versions"`
}

// Names holds the names of a resource.
type Names struct {
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	Kind       string   `json:"kind"`
	ListKind   string   `json:"listKind"`
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
}

// Version is one version of a resource: one Go type.
type Version struct {
	Name               string        `json:"name"`
	Served             bool          `json:"served"`
	Storage            bool          `json:"storage"`
	Deprecated         bool          `json:"deprecated,omitempty"`
	DeprecationWarning string        `json:"deprecationWarning,omitempty"`
	Schema             VersionSchema `json:"schema"`
	Subresources       *Subresources `json:"subresources,omitempty"`
	Columns            []Column      `json:"additionalPrinterColumns,omitempty"`
	// SelectableFields are the fields that field selectors can name, besides name and namespace: see
	// KEP-4358.
	SelectableFields []SelectableField `json:"selectableFields,omitempty"`
}

// SelectableField is a field that field selectors can name.
type SelectableField struct {
	JSONPath string `json:"jsonPath"`
}

// VersionSchema holds the schema of the whole object.
type VersionSchema struct {
	OpenAPIV3Schema *Schema `json:"openAPIV3Schema"`
}

// Subresources holds the subresources of a version.
type Subresources struct {
	Status *struct{} `json:"status,omitempty"`
	Scale  *Scale    `json:"scale,omitempty"`
}

// Scale holds the JSON paths of the values of the scale subresource.
type Scale struct {
	SpecReplicasPath   string `json:"specReplicasPath"`
	StatusReplicasPath string `json:"statusReplicasPath"`
	LabelSelectorPath  string `json:"labelSelectorPath,omitempty"`
}

// Column is a column of kubectl get.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	JSONPath    string `json:"jsonPath"`
	// Priority above 0 leaves the column to kubectl get -o wide.
	Priority int32 `json:"priority,omitempty"`
}

// Schema is a structural schema: the part of OpenAPI v3 and its extensions that a
// CustomResourceDefinition may contain, as far as Of and From use this part.
type Schema struct {
	Description string `json:"description,omitempty"`
	// Type is empty for a value of any type, and for IntOrString.
	Type     string            `json:"type,omitempty"`
	Format   string            `json:"format,omitempty"`
	Nullable bool              `json:"nullable,omitempty"`
	Default  json.RawMessage   `json:"default,omitempty"`
	Enum     []json.RawMessage `json:"enum,omitempty"`

	Minimum          *float64 `json:"minimum,omitempty"`
	ExclusiveMinimum bool     `json:"exclusiveMinimum,omitempty"`
	Maximum          *float64 `json:"maximum,omitempty"`
	ExclusiveMaximum bool     `json:"exclusiveMaximum,omitempty"`
	MultipleOf       *float64 `json:"multipleOf,omitempty"`

	MinLength *int64 `json:"minLength,omitempty"`
	MaxLength *int64 `json:"maxLength,omitempty"`
	Pattern   string `json:"pattern,omitempty"`

	Items    *Schema `json:"items,omitempty"`
	MinItems *int64  `json:"minItems,omitempty"`
	MaxItems *int64  `json:"maxItems,omitempty"`

	Properties           map[string]*Schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties *Schema            `json:"additionalProperties,omitempty"`
	MinProperties        *int64             `json:"minProperties,omitempty"`
	MaxProperties        *int64             `json:"maxProperties,omitempty"`

	AnyOf []*Schema `json:"anyOf,omitempty"`

	PreserveUnknownFields bool         `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	EmbeddedResource      bool         `json:"x-kubernetes-embedded-resource,omitempty"`
	IntOrString           bool         `json:"x-kubernetes-int-or-string,omitempty"`
	ListType              string       `json:"x-kubernetes-list-type,omitempty"`
	ListMapKeys           []string     `json:"x-kubernetes-list-map-keys,omitempty"`
	MapType               string       `json:"x-kubernetes-map-type,omitempty"`
	Validations           []Validation `json:"x-kubernetes-validations,omitempty"`
}

// typeName returns the type of s: a type of JSON, or a name of our own for a schema without a type.
func (s *Schema) typeName() string {
	switch {
	case s.IntOrString:
		return typeIntOrString
	case s.Type == "":
		return typeAny
	default:
		return s.Type
	}
}

// hasAlways reports whether each object of s has a value of the field name.
func (s *Schema) hasAlways(name string) bool {
	p := s.Properties[name]
	return p != nil && (p.Default != nil || slices.Contains(s.Required, name))
}

// paths appends the paths of the fields and elements of s, which is at path.
func (s *Schema) paths(all []string, path string) []string {
	for name, p := range s.Properties {
		inner := path + jsonPath([]string{name})
		all = p.paths(append(all, inner), inner)
	}
	for _, p := range []*Schema{s.Items, s.AdditionalProperties} {
		if p != nil {
			all = p.paths(append(all, path+"[*]"), path+"[*]")
		}
	}
	return all
}

// Validation is a rule in CEL.
type Validation struct {
	Rule    string `json:"rule"`
	Message string `json:"message,omitempty"`
}
