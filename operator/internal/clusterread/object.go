// Package clusterread reads the objects of a cluster, for the commands manifests and uninstall.
//
// One type stands for the objects of all kinds, with the fields that the commands need.
package clusterread

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Object is an object of any kind. An object of a list has no Spec, Status, Subjects and Webhooks, unless the stream
// has the representation [wire.Full].
type Object struct {
	Resource wire.Resource `json:"-"`
	Metadata Metadata      `json:"metadata"`
	Spec     Spec          `json:"spec"`
	Status   struct {
		// ReadyReplicas is that of a Deployment.
		ReadyReplicas int `json:"readyReplicas"`
		// StoredVersions are those of a CustomResourceDefinition.
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
	// Subjects are those of a binding.
	Subjects []Subject `json:"subjects"`
	// Webhooks are the entries of a webhook configuration.
	Webhooks []Webhook `json:"webhooks"`
}

// Metadata is a part of the metadata of an object.
type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               types.UID         `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
	Labels            map[string]string `json:"labels"`
	Finalizers        []string          `json:"finalizers"`
	OwnerReferences   []struct{}        `json:"ownerReferences"`
}

// Spec is a part of the spec of a Deployment, a Lease or a CustomResourceDefinition.
type Spec struct {
	// Versions and Conversion are those of a CustomResourceDefinition.
	Versions   []Version `json:"versions"`
	Conversion struct {
		Webhook Webhook `json:"webhook"`
	} `json:"conversion"`

	HolderIdentity       string           `json:"holderIdentity"`
	LeaseDurationSeconds int              `json:"leaseDurationSeconds"`
	RenewTime            metav1.MicroTime `json:"renewTime"`
	// Selector and Template are those of a Deployment.
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	Template struct {
		Spec struct {
			Containers []struct {
				Args []string `json:"args"`
			} `json:"containers"`
		} `json:"spec"`
	} `json:"template"`
}

// Version is a part of a version in a CustomResourceDefinition.
type Version struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
}

// Service names a Service. It is zero for a webhook that is called by a URL.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path,omitempty"`
	Port      int    `json:"port,omitempty"`
}

// Webhook is a part of an entry of a webhook configuration, or of the conversion of a CustomResourceDefinition.
type Webhook struct {
	Name         string `json:"name"`
	ClientConfig struct {
		Service  Service `json:"service"`
		CABundle []byte  `json:"caBundle"`
	} `json:"clientConfig"`
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
}

// Subject is somebody whom a binding grants a role.
type Subject struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// String returns how messages name the object.
func (o *Object) String() string {
	if o.Metadata.Namespace == "" {
		return o.Resource.String() + " " + o.Metadata.Name
	}
	return o.Resource.String() + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
}

// ConversionService returns the Service that converts the objects of a CustomResourceDefinition. It is zero if there is
// none, and for nil.
func (o *Object) ConversionService() Service {
	if o == nil {
		return Service{}
	}
	return o.Spec.Conversion.Webhook.ClientConfig.Service
}

// HasFinalizer reports whether o has one of these finalizers.
func (o *Object) HasFinalizer(finalizers []string) bool {
	for _, name := range o.Metadata.Finalizers {
		if slices.Contains(finalizers, name) {
			return true
		}
	}
	return false
}

// Find returns an object. It reports false if the object does not exist.
func Find(
	ctx context.Context, client *kube.Client, r wire.Resource, namespace, name string,
) (o *Object, exists bool, err error) {
	response, err := client.Do(ctx, &wire.Request{Verb: wire.VerbGet, Resource: r, Namespace: namespace, Name: name})
	if err != nil {
		return nil, false, kube.IgnoreNotFound(err)
	}
	o, err = decode(response.Body, r)
	return o, err == nil, err
}

func decode(body []byte, r wire.Resource) (*Object, error) {
	o := &Object{Resource: r}
	if err := kube.Unmarshal(body, o); err != nil {
		return nil, fmt.Errorf("decode an object of %s: %w", r, err)
	}
	return o, nil
}

// List returns the objects of a stream that fulfil keep, or all of them if keep is nil. A resource that the server
// cannot list has no objects.
func List(ctx context.Context, client *kube.Client, s wire.Stream, keep func(*Object) bool) (all []*Object, err error) {
	for page, err := range s.Pages(ctx, client) {
		if e, ok := kube.AsError(err); ok && e.Code == http.StatusMethodNotAllowed {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			o, err := decode(item, s.Resource)
			if err != nil {
				return nil, err
			}
			if keep == nil || keep(o) {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// First returns an object of a stream that fulfils isWanted, or nil if there is none. It reads no page after that of
// the object.
func First(ctx context.Context, client *kube.Client, s wire.Stream, isWanted func(*Object) bool) (*Object, error) {
	for page, err := range s.Pages(ctx, client) {
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if o, err := decode(item, s.Resource); err != nil || isWanted(o) {
				return o, err
			}
		}
	}
	return nil, nil
}

// SetFinalizers replaces the finalizers of an object. The server refuses it with a conflict if the object has changed.
func SetFinalizers(ctx context.Context, client *kube.Client, o *Object, finalizers []string) error {
	m := &o.Metadata
	body, err := kube.Marshal(map[string]any{
		"metadata": map[string]any{"uid": m.UID, "resourceVersion": m.ResourceVersion, "finalizers": finalizers},
	})
	if err == nil {
		_, err = client.Do(ctx, &wire.Request{
			Verb: wire.VerbPatch, Resource: o.Resource, Namespace: m.Namespace, Name: m.Name,
			ContentType: wire.ContentMergePatch, Body: body,
			Preconditions: wire.Preconditions{UID: m.UID, ResourceVersion: m.ResourceVersion},
		})
	}
	return kube.IgnoreNotFound(err)
}

// Counts returns lines with the numbers of objects of each kind in each namespace.
func Counts(objects []*Object) string {
	counts := make(map[string]int)
	for _, o := range objects {
		place := " outside of namespaces"
		if o.Metadata.Namespace != "" {
			place = " in namespace " + o.Metadata.Namespace
		}
		counts["\n  "+o.Resource.String()+": %d"+place]++
	}
	var lines []string
	for line, n := range counts {
		lines = append(lines, fmt.Sprintf(line, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// IsSearched reports whether a search through all kinds includes the objects of a resource. Events, the Endpoints of
// Services and the metrics of Pods go by themselves.
func IsSearched(r wire.Resource) bool {
	return r.Plural != "events" && r.Plural != "endpoints" && r.Group != "metrics.k8s.io"
}

// Deployments returns the resource of Deployments.
func Deployments() wire.Resource {
	return wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Plural: "deployments",
	}
}
