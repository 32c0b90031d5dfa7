package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/manifest"
	"github.com/yare-go/yare/kube"
)

// ReadSamples returns the objects in a file of YAML or JSON. Their namespaces do not count: each run has
// its own.
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

// maxServedWait is how long an API server may take to serve a new kind.
const maxServedWait = 30 * time.Second

// Install applies the objects in YAML or JSON documents, such as CustomResourceDefinitions, and waits
// until the kinds that they define are served.
func Install(ctx context.Context, config *kube.Config, text []byte) error {
	objects, err := manifest.Parse(text)
	if err != nil {
		return err
	}
	client, err := kube.NewClient(config)
	if err != nil {
		return err
	}
	client = client.WithFieldManager(userManager)
	ctx, cancel := context.WithTimeoutCause(ctx, maxServedWait, fmt.Errorf("the server does not serve the new kinds within %s", maxServedWait))
	defer cancel()
	for i := range objects {
		o := &objects[i]
		resource, err := resourceOf(ctx, client, o.GroupVersionKind())
		if err != nil {
			return err
		}
		namespace := o.GetNamespace()
		if !resource.ClusterScoped && namespace == "" {
			namespace = "default"
		}
		if _, err := kube.Dynamic(client, resource, namespace).Apply(ctx, o); err != nil {
			return err
		}
	}
	for i := range objects {
		if o := &objects[i]; o.GetKind() == "CustomResourceDefinition" {
			if err := waitUntilServed(ctx, client, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// resourceOf returns the resource of a kind.
func resourceOf(ctx context.Context, client *kube.Client, kind schema.GroupVersionKind) (kube.Resource, error) {
	resources, err := kube.Discover(ctx, client, kind.GroupVersion())
	if err != nil {
		return kube.Resource{}, err
	}
	for _, r := range resources {
		if r.Kind == kind.Kind {
			return r, nil
		}
	}
	return kube.Resource{}, fmt.Errorf("the server does not serve the kind %s", kind)
}

// waitUntilServed waits until the API server serves a kind that was just defined.
func waitUntilServed(ctx context.Context, client *kube.Client, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		for {
			_, err := resourceOf(ctx, client, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
			if err == nil {
				break
			}
			if waited := sleep(ctx, 50*time.Millisecond); waited != nil {
				return errors.Join(waited, err)
			}
		}
	}
	return nil
}
