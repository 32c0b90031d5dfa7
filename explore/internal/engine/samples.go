package engine

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/kube"
)

// ReadSamples returns the objects in a file of YAML or JSON. The namespaces of the objects do not count, because
// each run has a namespace of its own.
func ReadSamples(path string) ([]json.RawMessage, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects, err := manifest.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var samples []json.RawMessage
	for _, o := range objects {
		raw, err := o.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		samples = append(samples, raw)
	}
	return samples, nil
}

// Sample returns the JSON of an object, with its kind and without its status.
func Sample(o kube.Object) (json.RawMessage, error) {
	data, err := kube.Marshal(o)
	if err != nil {
		return nil, err
	}
	var object unstructured.Unstructured
	if err := kube.Unmarshal(data, &object.Object); err != nil {
		return nil, err
	}
	kind, err := kube.TypeOfObject(o)
	if err != nil {
		return nil, err
	}
	object.SetGroupVersionKind(kind.Resource.GroupVersionKind)
	delete(object.Object, "status")
	return json.Marshal(object.Object)
}
