package certificates

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/followed"
)

// secret is a Secret. The type of k8s.io/api would be linked for nothing else, with all types of its group. The zero
// value stands for a Secret that does not exist.
type secret struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Data       data     `json:"data"`
}

type metadata struct {
	Name            string                  `json:"name"`
	Namespace       string                  `json:"namespace"`
	UID             types.UID               `json:"uid,omitempty"`
	ResourceVersion string                  `json:"resourceVersion"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
}

// secretClient reads and writes one Secret.
type secretClient struct {
	followed.Reference[secret]
	client *kube.Client
	// deployment is the Deployment of the installation. It may be nil.
	deployment *followed.Deployment
}

func newSecretClient(client *kube.Client, namespace, name string) *secretClient {
	return &secretClient{
		Reference: followed.ReferenceTo[secret](Resource(), kube.Key{Namespace: namespace, Name: name}), client: client,
	}
}

// write replaces the data of the Secret, if the server has the version that current is. It returns the Secret as it is
// then. It creates the Secret if current does not exist and the Deployment is not gone. It is an apply, because the
// permission for an apply that creates can name the Secret. An apply that names the version and no uid would create a
// Secret that was deleted.
func (c *secretClient) write(ctx context.Context, current *secret, d data) (none followed.State[secret], err error) {
	sent := &secret{APIVersion: "v1", Kind: "Secret", Metadata: current.Metadata, Data: d}
	m := &sent.Metadata
	m.Name, m.Namespace = c.Name, c.Namespace
	// An apply without the reference would remove it. References of others are theirs.
	m.OwnerReferences = slices.DeleteFunc(slices.Clone(m.OwnerReferences),
		func(r metav1.OwnerReference) bool { return !c.deployment.IsReferredToBy(r) })
	if m.UID == "" {
		owners, err := c.ownersOfNew(ctx)
		if err != nil {
			return none, err
		}
		m.ResourceVersion, m.OwnerReferences = ident.NeverVersion, owners
	}
	return c.Write(ctx, c.client, wire.ContentApply, sent,
		wire.Preconditions{UID: m.UID, ResourceVersion: m.ResourceVersion})
}

// ownersOfNew returns the owner of a Secret that is created. Whoever removes an installation may remove the Secret
// first, while the program still runs and has its permissions. So the Deployment owns the new Secret, and goes with it.
// ownersOfNew returns an error if the Deployment is gone already.
func (c *secretClient) ownersOfNew(ctx context.Context) ([]metav1.OwnerReference, error) {
	if err := c.deployment.Read(ctx); err != nil && c.deployment.HasExisted() {
		return nil, err
	}
	if c.deployment.IsGone() {
		return nil, fmt.Errorf("the %s is gone, so the %s is not made again", c.deployment, c)
	}
	return c.deployment.Owner(), nil
}

// Resource returns the resource of Secrets.
func Resource() wire.Resource {
	return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Plural: "secrets"}
}

// Verbs returns the verbs that a [Store] uses, each for the Secret by its name.
func Verbs() []wire.Verb {
	return []wire.Verb{wire.VerbList, wire.VerbWatch, wire.VerbCreate, wire.VerbPatch}
}
