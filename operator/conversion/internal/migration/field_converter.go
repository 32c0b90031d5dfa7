package migration

import (
	"fmt"
	"maps"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/jsonscan/fieldset"
	"github.com/yare-go/yare/kube"
)

// Converter converts objects of one kind between its versions.
type Converter interface {
	// Convert returns an object in another version. The object is JSON in the version of its apiVersion. It can be a part
	// of an object, without any of the fields that its version requires.
	Convert(object []byte, version string) ([]byte, error)
}

// FieldConverter converts field sets of managers between the versions of a kind, by a Converter.
type FieldConverter struct{ converter Converter }

// NewFieldConverter returns the FieldConverter for the kind of a Converter.
func NewFieldConverter(c Converter) *FieldConverter { return &FieldConverter{c} }

// convertFields returns the fields in the new version that correspond to the fields that are owned in the version old.
// The fields of the metadata stay as they are.
func (f *FieldConverter) convertFields(
	c *managedFieldsConversion, owned fieldset.Set, old string,
) (fieldset.Set, error) {
	before, err := f.convertObject(c, c.object, old)
	if err != nil {
		return nil, err
	}
	after, err := f.convertObject(c, c.object, c.version)
	if err != nil {
		return nil, err
	}
	part, _ := ownedPart(before, owned, c.definition.schemaOf(old)).(map[string]any)
	converted, err := f.convertPart(c, part, old)
	if err != nil {
		return nil, err
	}
	// A converter can set fields for which the part has no values.
	empty, err := f.convertPart(c, nil, old)
	if err != nil {
		return nil, err
	}
	fields := ownedFields(converted, empty, after, owned, c.definition.schemaOf(c.version))
	if metadata, ok := owned["f:metadata"]; ok {
		fields["f:metadata"] = metadata
	}
	return fields, nil
}

// convertPart converts a part of the content of an object from the version old to the new version.
func (f *FieldConverter) convertPart(
	c *managedFieldsConversion, content map[string]any, old string,
) (map[string]any, error) {
	part := maps.Clone(content)
	if part == nil {
		part = make(map[string]any)
	}
	var metadata struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace,omitempty"`
		} `json:"metadata"`
	}
	if err := kube.Unmarshal(c.object, &metadata); err != nil {
		return nil, err
	}
	part["apiVersion"] = apischema.GroupVersion{Group: c.definition.Spec.Group, Version: old}.String()
	part["kind"] = c.definition.Spec.Names.Kind
	part["metadata"] = metadata.Metadata
	raw, err := kube.Marshal(part)
	if err != nil {
		return nil, err
	}
	return f.convertObject(c, raw, c.version)
}

// convertObject returns the content of an object in a version: the members that managers own in it, without the
// metadata.
func (f *FieldConverter) convertObject(c *managedFieldsConversion, raw []byte, version string) (map[string]any, error) {
	var from struct {
		APIVersion string `json:"apiVersion"`
	}
	if err := kube.Unmarshal(raw, &from); err != nil {
		return nil, err
	}
	want := (apischema.GroupVersion{Group: c.definition.Spec.Group, Version: version}).String()
	if from.APIVersion != want {
		var err error
		if raw, err = f.converter.Convert(raw, version); err != nil {
			return nil, fmt.Errorf("convert the object from %s to %s: %w", from.APIVersion, want, err)
		}
	}
	var content map[string]any
	if err := kube.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	for _, member := range []string{"apiVersion", "kind", "metadata"} {
		delete(content, member)
	}
	return content, nil
}
