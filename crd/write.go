package crd

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// WriteYAML writes one document after the other, each begun by a line of three dashes,
// so that kubectl apply -f - takes what it writes. Keys are in alphabetical order: the
// same definitions are the same bytes.
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

// WriteJSON writes one indented JSON document after the other, which kubectl apply -f -
// takes as well.
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
