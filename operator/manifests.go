package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Manifests holds the objects that the command manifests prints: see the field Manifests of [Program].
type Manifests struct {
	// Objects are the objects as decoded JSON, in the order of their application. Their integers are int64. A
	// function may change, add and remove objects. [EditManifest] and [AddManifest] do so with the types of
	// k8s.io/api.
	Objects []map[string]any
	// Namespace is where the program is installed. In a chart of Helm, Namespace and the names of the
	// objects are placeholders.
	Namespace string
}

// EditManifest calls edit with each object of T's kind among the manifests, such as the Deployment,
// whose only container is named operator:
//
//	operator.EditManifest(m, func(d *appsv1.Deployment) {
//		container := &d.Spec.Template.Spec.Containers[0]
//		container.Env = append(container.Env, corev1.EnvVar{Name: "TZ", Value: "Europe/Berlin"})
//	})
//
// EditManifest returns an error if there is no object of that kind, or T cannot be decoded or encoded. T
// follows the rules of [kube.API.Apply]: nil values and empty structs are left out.
func EditManifest[T any, P kube.ObjectOf[T]](m *Manifests, edit func(*T)) error {
	resource, err := kube.ResourceOf[T, P]()
	if err != nil {
		return err
	}
	found := false
	for i, object := range m.Objects {
		if object["kind"] != resource.Kind || object["apiVersion"] != resource.GroupVersion().String() {
			continue
		}
		found = true
		content, err := kube.Marshal(object)
		t := new(T)
		if err == nil {
			err = kube.Unmarshal(content, t)
		}
		if err != nil {
			return fmt.Errorf("decode the manifest of a %s: %w", resource.Kind, err)
		}
		edit(t)
		if m.Objects[i], err = manifestOf[T, P](t); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("there is no %s (%s) among the manifests", resource.Kind, ident.GoTypeName(reflect.TypeFor[T]()))
	}
	return nil
}

// AddManifest adds an object before all Deployments, such as a ConfigMap that the program mounts. The
// object gets the labels of the installation, so that it is updated and removed with the rest. Package
// operator/admissionpolicy has parts that add admission policies.
func AddManifest[T any, P kube.ObjectOf[T]](m *Manifests, t *T) error {
	object, err := manifestOf[T, P](t)
	if err == nil {
		m.addBeforeDeployments(object)
	}
	return err
}

// addBeforeDeployments adds an object before all Deployments.
func (m *Manifests) addBeforeDeployments(object map[string]any) {
	var before, after []map[string]any
	for _, o := range m.Objects {
		if o["kind"] == "Deployment" {
			after = append(after, o)
		} else {
			before = append(before, o)
		}
	}
	m.Objects = append(append(before, object), after...)
}

// manifestOf returns t as an apply would send it. A Secret keeps its stringData, because base64 would hide the
// placeholders of a chart.
func manifestOf[T any, P kube.ObjectOf[T]](t *T) (map[string]any, error) {
	var recorded []byte
	// The recorder refuses the apply, which is not an error here.
	recorder := wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		recorded = r.Body
		return nil, errRecorded
	})
	_, err := kube.Apply(context.Background(), kube.NewClientFromHandler(recorder), P(t))
	object := make(map[string]any)
	if errors.Is(err, errRecorded) {
		err = kube.Unmarshal(recorded, &object)
	}
	if err != nil {
		return nil, fmt.Errorf("encode a manifest: %w", err)
	}
	if object["apiVersion"] == "v1" && object["kind"] == "Secret" {
		return object, keepStringData(object, t)
	}
	return object, nil
}

// keepStringData puts the stringData of the Secret secret back into object, which has it as data.
func keepStringData(object map[string]any, secret any) error {
	encoded, err := kube.Marshal(secret)
	if err != nil {
		return err
	}
	var author struct {
		Data       map[string]any `json:"data"`
		StringData map[string]any `json:"stringData"`
	}
	if err := kube.Unmarshal(encoded, &author); err != nil || len(author.StringData) == 0 {
		return err
	}
	object["stringData"] = author.StringData
	if object["data"] = author.Data; len(author.Data) == 0 {
		delete(object, "data")
	}
	return nil
}

// errRecorded is the answer to a request that was recorded and not sent.
var errRecorded = errors.New("the request was recorded")
