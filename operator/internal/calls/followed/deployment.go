package followed

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
)

// Deployment is the Deployment of an installation, as a keeper has read it last. It is used by one goroutine. A nil
// *Deployment stands for a program without a Deployment.
//
// A program can run without a Deployment of the name, such as one that its author has installed by a StatefulSet. So a
// Deployment that was never read is not gone. For example:
//
//	answer to Read   IsGone   Owner
//	not found        false    none
//	it exists        false    the Deployment
//	it is deleted    true     none
//	forbidden        true     none: the answer before stays
type Deployment struct {
	client          *kube.Client
	namespace, name string
	// isKnown is true once a read was answered, and hasExisted is true once a read has shown the Deployment.
	isKnown, hasExisted bool
	// lastRead is the Deployment, or zero if it does not exist or is being deleted.
	lastRead deploymentMetadata
}

type deploymentMetadata struct {
	UID               types.UID         `json:"uid"`
	DeletionTimestamp string            `json:"deletionTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
}

// NewDeployment returns the Deployment of a name that nobody has read yet. client reaches the server. NewDeployment
// returns nil if the name is empty.
func NewDeployment(client *kube.Client, namespace, name string) *Deployment {
	if name == "" {
		return nil
	}
	return &Deployment{client: client, namespace: namespace, name: name}
}

// DeploymentAccess returns the permission that [Deployment.Read] needs for the Deployment of a name.
func DeploymentAccess(name string) kube.Access {
	return kube.Access{
		Resource: clusterread.Deployments(), Verbs: []wire.Verb{wire.VerbGet}, Names: []string{name}, OwnNamespace: true,
	}
}

// String returns the kind and the name of the Deployment.
func (d *Deployment) String() string { return fmt.Sprintf("Deployment %s/%s", d.namespace, d.name) }

// Read reads the Deployment. An error leaves what was read before.
func (d *Deployment) Read(ctx context.Context) error {
	if d == nil {
		return nil
	}
	response, err := d.client.Do(ctx, &wire.Request{
		Verb: wire.VerbGet, Resource: clusterread.Deployments(), Namespace: d.namespace, Name: d.name,
		Representation: wire.MetadataOnly, Live: true,
	})
	var read struct {
		Metadata deploymentMetadata `json:"metadata"`
	}
	if err == nil {
		err = kube.Unmarshal(response.Body, &read)
	}
	if kube.IgnoreNotFound(err) != nil {
		return fmt.Errorf("find out whether the %s exists: %w", d, err)
	}
	if read.Metadata.DeletionTimestamp != "" {
		d.hasExisted, read.Metadata = true, deploymentMetadata{}
	}
	d.isKnown, d.lastRead = true, read.Metadata
	d.hasExisted = d.hasExisted || read.Metadata.UID != ""
	return nil
}

// ReadOnce reads the Deployment unless a read was answered before.
func (d *Deployment) ReadOnce(ctx context.Context) error {
	if d == nil || d.isKnown {
		return nil
	}
	return d.Read(ctx)
}

// HasExisted reports whether a read has shown the Deployment.
func (d *Deployment) HasExisted() bool { return d != nil && d.hasExisted }

// IsGone reports whether the Deployment existed, and did not exist or was being deleted when it was read last.
func (d *Deployment) IsGone() bool { return d.HasExisted() && d.lastRead.UID == "" }

// Owner returns a reference by which the Deployment owns an object of its namespace. It returns nothing if the
// Deployment did not exist when it was read last.
func (d *Deployment) Owner() []metav1.OwnerReference {
	if d == nil || d.lastRead.UID == "" {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: d.name, UID: d.lastRead.UID}}
}

// IsReferredToBy reports whether r is a reference as Owner returns it, also to an earlier Deployment of the name.
func (d *Deployment) IsReferredToBy(r metav1.OwnerReference) bool {
	return d != nil && r.APIVersion == "apps/v1" && r.Kind == "Deployment" && r.Name == d.name
}

// managedBy is the label with the tool that has installed an object.
const managedBy = "app.kubernetes.io/managed-by"

// Marks returns the label and the annotations by which Helm finds the objects of a release, if Helm has installed the
// Deployment.
func (d *Deployment) Marks() (labels, annotations map[string]string) {
	if d == nil || d.lastRead.Labels[managedBy] != "Helm" {
		return nil, nil
	}
	annotations = make(map[string]string)
	for _, key := range []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace"} {
		annotations[key] = d.lastRead.Annotations[key]
	}
	return map[string]string{managedBy: "Helm"}, annotations
}
