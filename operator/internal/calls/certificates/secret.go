package certificates

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/follow"
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
	client *kube.Client
	// stream is the stream of the Secret.
	stream wire.Stream
	name   string
	// deployment is the Deployment of the installation. It may be nil.
	deployment *followed.Deployment
}

func newSecretClient(client *kube.Client, namespace, name string) *secretClient {
	return &secretClient{
		client: client,
		stream: wire.Stream{Resource: Resource(), Namespace: namespace, FieldSelector: "metadata.name=" + name}, name: name,
	}
}

// String returns the name of the Secret.
func (c *secretClient) String() string { return c.stream.Namespace + "/" + c.name }

// read returns the Secret as the server has it. The request is a list, for which the watch needs the permission anyway.
func (c *secretClient) read(ctx context.Context) (*secret, error) {
	r := c.stream.Request(wire.VerbList)
	r.Live = true
	response, err := c.client.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []*secret `json:"items"`
	}
	if err := kube.Unmarshal(response.Body, &list); err != nil || len(list.Items) > 1 {
		return nil, fmt.Errorf("the answer to a list of the Secret %s is not that of a Kubernetes API", c)
	}
	return append(list.Items, new(secret))[0], nil
}

// write replaces the data of the Secret, if the server has the version that current is. It returns the Secret as it is
// then. It creates the Secret if current does not exist and the Deployment is not gone. It is an apply, because the
// permission for an apply that creates can name the Secret. An apply that names the version and no uid would create a
// Secret that was deleted.
func (c *secretClient) write(ctx context.Context, current *secret, d data) (*secret, error) {
	sent := &secret{APIVersion: "v1", Kind: "Secret", Metadata: current.Metadata, Data: d}
	m := &sent.Metadata
	m.Name, m.Namespace = c.name, c.stream.Namespace
	// An apply without the reference would remove it. References of others are theirs.
	m.OwnerReferences = slices.DeleteFunc(slices.Clone(m.OwnerReferences),
		func(r metav1.OwnerReference) bool { return !c.deployment.IsReferredToBy(r) })
	if m.UID == "" {
		owners, err := c.ownersOfNew(ctx)
		if err != nil {
			return nil, err
		}
		m.ResourceVersion, m.OwnerReferences = ident.NeverVersion, owners
	}
	body, err := kube.Marshal(sent)
	if err != nil {
		return nil, err
	}
	r := c.stream.Request(wire.VerbPatch, "fieldManager", c.client.FieldManager(), "force", "true")
	r.Query.Del("fieldSelector")
	r.Name, r.ContentType, r.Body = c.name, wire.ContentApply, body
	r.Preconditions = wire.Preconditions{UID: m.UID, ResourceVersion: m.ResourceVersion}
	response, err := c.client.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.decode(response.Body)
}

// ownersOfNew returns the owner of a Secret that is created. Whoever removes an installation may remove the Secret
// first, while the program still runs and has its permissions. So the Deployment owns the new Secret, and goes with it.
// ownersOfNew returns an error if the Deployment is gone already.
func (c *secretClient) ownersOfNew(ctx context.Context) ([]metav1.OwnerReference, error) {
	if err := c.deployment.Read(ctx); err != nil && c.deployment.HasExisted() {
		return nil, err
	}
	if c.deployment.IsGone() {
		return nil, fmt.Errorf("the %s is gone, so the Secret %s is not made again", c.deployment, c)
	}
	return c.deployment.Owner(), nil
}

// decode returns the Secret that content encodes. The error does not have the content.
func (c *secretClient) decode(content []byte) (*secret, error) {
	s := new(secret)
	if kube.Unmarshal(content, s) != nil {
		return nil, fmt.Errorf("the Secret %s is not that of a Kubernetes API", c)
	}
	return s, nil
}

// observation is a state of the Secret, or an error of the watch.
type observation struct {
	secret *secret
	err    error
}

// watch sends what the watch of the Secret shows, until ctx ends.
func (c *secretClient) watch(ctx context.Context, observed chan<- observation) {
	for state, err := range follow.ObjectStates(ctx, c.client, c.stream) {
		o := observation{new(secret), err}
		if state.Object != nil {
			o.secret, o.err = c.decode(state.Object)
		}
		select {
		case observed <- o:
		case <-ctx.Done():
			return
		}
	}
}

// isOutdated reports whether a write was refused because the Secret is not the one that the write names.
func isOutdated(err error) bool { return kube.IsConflict(err) || kube.IsUIDConflict(err) }

// Resource returns the resource of Secrets.
func Resource() wire.Resource {
	return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Plural: "secrets"}
}

// Verbs returns the verbs that a [Store] uses, each for the Secret by its name.
func Verbs() []wire.Verb {
	return []wire.Verb{wire.VerbList, wire.VerbWatch, wire.VerbCreate, wire.VerbPatch}
}
