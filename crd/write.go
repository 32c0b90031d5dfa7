package crd

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

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
