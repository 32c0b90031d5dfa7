package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// ReadInstall returns the objects in files of YAML or JSON, and in the files of folders, as YAML documents.
func ReadInstall(paths []string) ([]byte, error) {
	var text []byte
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if files, err = manifestsIn(path); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			text = append(append(text, data...), "\n---\n"...)
		}
	}
	return text, nil
}

// manifestsIn returns the files of YAML and JSON in a folder, sorted, without the files of kustomize.
func manifestsIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		name := entry.Name()
		switch extension := filepath.Ext(name); {
		case strings.TrimSuffix(name, extension) == "kustomization":
		case extension == ".yaml", extension == ".yml", extension == ".json":
			files = append(files, filepath.Join(folder, name))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the folder %s has no file of YAML or JSON", folder)
	}
	return files, nil
}

// maxServedWait is how long an API server may take to serve a new kind.
const maxServedWait = 30 * time.Second

// Install applies the objects in YAML or JSON documents, such as CustomResourceDefinitions, and waits
// until the kinds that they define are served. It makes the namespaces of the objects if they do not exist.
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
	ctx, cancel := context.WithTimeoutCause(ctx, maxServedWait,
		fmt.Errorf("the server does not serve the new kinds within %s", maxServedWait))
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
		if err := makeNamespace(ctx, client, namespace); err != nil {
			return err
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

// makeNamespace makes a namespace if it does not exist. It does nothing if the name is empty.
func makeNamespace(ctx context.Context, client *kube.Client, name string) error {
	if name == "" {
		return nil
	}
	_, err := kube.Everywhere[corev1.Namespace](client).Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if kube.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// resourceOf returns the resource of a kind.
func resourceOf(ctx context.Context, client *kube.Client, kind schema.GroupVersionKind) (wire.Resource, error) {
	resources, err := wire.Discover(ctx, client, kind.GroupVersion())
	if err != nil {
		return wire.Resource{}, err
	}
	for _, r := range resources {
		if r.Kind == kind.Kind {
			return r, nil
		}
	}
	return wire.Resource{}, fmt.Errorf("the server does not serve the kind %s", kind)
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
			if waited := clock.SleepReal(ctx, 50*time.Millisecond); waited != nil {
				return errors.Join(waited, err)
			}
		}
	}
	return nil
}
