package values

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
)

// Schema is the part of the structural schema of a custom resource that restricts the values of fields.
// Unlike crd.Schema it decodes each definition that a server accepts.
type Schema struct {
	Type    string            `json:"type"`
	Default json.RawMessage   `json:"default"`
	Enum    []json.RawMessage `json:"enum"`
	Pattern string            `json:"pattern"`
	Format  string            `json:"format"`
	// MaxLength is the greatest length of a string.
	MaxLength *int `json:"maxLength"`

	Minimum          *float64 `json:"minimum"`
	ExclusiveMinimum bool     `json:"exclusiveMinimum"`
	Maximum          *float64 `json:"maximum"`
	ExclusiveMaximum bool     `json:"exclusiveMaximum"`
	MultipleOf       *float64 `json:"multipleOf"`

	Items    *Schema `json:"items"`
	MinItems int     `json:"minItems"`
	MaxItems *int    `json:"maxItems"`

	Properties    map[string]*Schema `json:"properties"`
	Required      []string           `json:"required"`
	MinProperties int                `json:"minProperties"`
	MaxProperties *int               `json:"maxProperties"`
	// Additional is the schema of the values of a map, or true for values of any kind.
	Additional json.RawMessage `json:"additionalProperties"`

	IntOrString bool              `json:"x-kubernetes-int-or-string"`
	Validations []json.RawMessage `json:"x-kubernetes-validations"`
}

// The types of a schema.
const (
	typeObject  = "object"
	typeArray   = "array"
	typeInteger = "integer"
	typeNumber  = "number"
	typeBoolean = "boolean"
	typeString  = "string"
)

// ParseDefinition returns the schema of a version of a resource from the JSON of a
// CustomResourceDefinition.
func ParseDefinition(definition []byte, version string) (*Schema, error) {
	var d struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPIV3Schema *Schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(definition, &d); err != nil {
		return nil, fmt.Errorf("decode the CustomResourceDefinition: %w", err)
	}
	for _, v := range d.Spec.Versions {
		if v.Name != version {
			continue
		}
		if v.Schema.OpenAPIV3Schema == nil {
			return nil, fmt.Errorf("the version %s of the CustomResourceDefinition %s has no schema", version, d.Metadata.Name)
		}
		return v.Schema.OpenAPIV3Schema, nil
	}
	return nil, fmt.Errorf("the CustomResourceDefinition %s has no version %s", d.Metadata.Name, version)
}

// isMap reports whether the names of the members of the object are free.
func (s *Schema) isMap() bool {
	return len(s.Additional) > 0 && string(s.Additional) != "false" && string(s.Additional) != "null"
}

// isQuantity reports whether the value is a quantity. A schema shows a quantity by a pattern only.
func (s *Schema) isQuantity() bool {
	if s.Pattern == "" || !s.IntOrString && s.Type != typeString {
		return false
	}
	pattern, err := regexp.Compile(s.Pattern)
	return err == nil && pattern.MatchString("1Gi") && pattern.MatchString("100m") && !pattern.MatchString("a")
}

// bounds returns the least and the greatest number that a field takes. A number without a declared maximum is 3 at
// most, or one more than its minimum, because programs make so many objects of such numbers. Examples: without bounds a
// field takes 0 to 3, and with the minimum 5 it takes 5 to 6.
func (s *Schema) bounds() (low, high float64, err error) {
	switch {
	case s.Minimum != nil:
		low = *s.Minimum
	case s.Maximum != nil:
		low = min(0, *s.Maximum)
	}
	high = max(3, low+1)
	if s.Maximum != nil {
		high = *s.Maximum
	}
	step := (high - low) / 4
	if whole := s.step(); whole > 0 {
		step = whole
		low, high = math.Ceil(low/step)*step, math.Floor(high/step)*step
	}
	if s.ExclusiveMinimum && s.Minimum != nil && low == *s.Minimum {
		low += step
	}
	if s.ExclusiveMaximum && s.Maximum != nil && high == *s.Maximum {
		high -= step
	}
	if low > high {
		return 0, 0, errors.New("no number fits the schema")
	}
	return low, high, nil
}

// step returns the number of which all values are multiples, or 0 if there is no such number.
func (s *Schema) step() float64 {
	switch {
	case s.MultipleOf != nil && *s.MultipleOf > 0:
		return *s.MultipleOf
	case s.Type == typeInteger:
		return 1
	}
	return 0
}

// number returns n as the type of the schema has it.
func (s *Schema) number(n float64) any {
	if s.Type == typeNumber {
		return n
	}
	return int64(n)
}

// These are the reasons for which a schema suggests no value.
var (
	errOpaque       = errors.New("opaque string: needs Values")
	errQuantity     = errors.New("quantity that the sample does not have: needs Values")
	errAnyType      = errors.New("value of any type: needs Values")
	errMap          = errors.New("map of which the sample has no entry: needs Values")
	errList         = errors.New("list of opaque items: needs Values")
	errNoOtherValue = errors.New("the schema allows no other value")
)

// minimal returns the least value that fits the schema.
func (s *Schema) minimal() (any, error) {
	switch {
	case len(s.Default) > 0:
		return decode(s.Default)
	case len(s.Enum) > 0:
		return decode(s.Enum[0])
	case s.isQuantity():
		return nil, errQuantity
	case s.IntOrString && s.Pattern == "":
		return int64(1), nil
	}
	switch s.Type {
	case typeObject:
		return s.minimalObject()
	case typeArray:
		return s.minimalArray()
	case typeBoolean:
		return false, nil
	case typeInteger, typeNumber:
		low, _, err := s.bounds()
		return s.number(low), err
	case typeString:
		return nil, errOpaque
	}
	return nil, errAnyType
}

// minimalObject returns an object with the required members only.
func (s *Schema) minimalObject() (map[string]any, error) {
	object := map[string]any{}
	for _, name := range s.Required {
		property, ok := s.Properties[name]
		if !ok {
			return nil, fmt.Errorf("%s is required, but has no schema", name)
		}
		v, err := property.minimal()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		object[name] = v
	}
	if len(object) < s.MinProperties {
		return nil, errMap
	}
	return object, nil
}

// minimalArray returns the shortest list.
func (s *Schema) minimalArray() ([]any, error) {
	if s.MinItems == 0 {
		return []any{}, nil
	}
	if s.Items == nil {
		return nil, errList
	}
	item, err := s.Items.minimal()
	if err != nil {
		return nil, err
	}
	return slices.Repeat([]any{item}, s.MinItems), nil
}
