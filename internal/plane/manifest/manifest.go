// Package manifest reads files of Kubernetes objects.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Parse returns the objects in YAML or JSON documents. Empty documents are left out.
func Parse(data []byte) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("it is not YAML: %w", err)
		}
		var content map[string]any
		if err := utiljson.Unmarshal(data, &content); err != nil { // keeps integers integers
			return nil, fmt.Errorf("it is no object: %w", err)
		}
		if len(content) > 0 {
			objects = append(objects, unstructured.Unstructured{Object: content})
		}
	}
}
