package certificates

import (
	"context"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// neverVersion is no object's resourceVersion: etcd has its first revision while it is empty. A server ignores the
// version if it creates the object, and answers with a conflict if it finds one.
const neverVersion = "1"

// secret is a Secret. The type of k8s.io/api would be linked for nothing else, with all types of its group. The zero
// value stands for a Secret that does not exist.
type secret struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Data       data     `json:"data"`
}

type metadata struct {
	Name            string    `json:"name"`
	Namespace       string    `json:"namespace"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion"`
}

// secretClient reads and writes one Secret.
type secretClient struct {
	client          *kube.Client
	namespace, name string
}

// String returns the name of the Secret.
func (c secretClient) String() string { return c.namespace + "/" + c.name }

// refresh replaces live by the Secret as the server has it. After an error live stays. The request is a list, because
// the answer to a list has a Date also if the Secret does not exist.
func (c secretClient) refresh(ctx context.Context, live *secret) error {
	var read secret
	for page, err := range c.stream().Pages(ctx, c.client.Live()) {
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if read, err = c.decode(item); err != nil {
				return err
			}
		}
	}
	*live = read
	return nil
}

// write replaces the data of the Secret, if the server has the version that live is. It returns the Secret as it is
// then. It creates the Secret if live does not exist. It is an apply, because the permission for an apply that
// creates can name the Secret. An apply that names the version and no uid would create a Secret that was deleted.
func (c secretClient) write(ctx context.Context, live secret, d data) (secret, error) {
	m := metadata{Name: c.name, Namespace: c.namespace, UID: live.Metadata.UID, ResourceVersion: live.Metadata.ResourceVersion}
	if m.UID == "" {
		m.ResourceVersion = neverVersion
	}
	body, err := kube.Marshal(&secret{APIVersion: "v1", Kind: "Secret", Metadata: m, Data: d})
	if err != nil {
		return secret{}, fmt.Errorf("encode the Secret %s: %w", c, err)
	}
	response, err := c.client.Do(ctx, &wire.Request{
		Verb: wire.VerbPatch, Resource: Resource(), Namespace: c.namespace, Name: c.name, ContentType: wire.ContentApply, Body: body,
		Query:         url.Values{"fieldManager": {c.client.FieldManager()}, "force": {"true"}},
		Preconditions: wire.Preconditions{UID: m.UID, ResourceVersion: m.ResourceVersion},
	})
	if err != nil {
		return secret{}, err
	}
	return c.decode(response.Body)
}

// decode returns the Secret that content encodes. The error does not have the content.
func (c secretClient) decode(content []byte) (s secret, err error) {
	if kube.Unmarshal(content, &s) != nil {
		return secret{}, fmt.Errorf("the Secret %s is not that of a Kubernetes API", c)
	}
	return s, nil
}

// watch sends the states of the Secret to states, and errors to failed, until ctx ends.
func (c secretClient) watch(ctx context.Context, states chan<- secret, failed func(error)) {
	exists := false
	for change, err := range follow.Stream(ctx, c.client, c.stream()) {
		var s secret
		switch {
		case err != nil:
			failed(err)
			continue
		case change.Type == follow.ChangeAdded, change.Type == follow.ChangeModified:
			if s, err = c.decode(change.Object); err != nil {
				failed(err)
				continue
			}
			exists = true
		case change.Type == follow.ChangeDeleted, change.Type == follow.ChangeListed && !exists:
			exists = false
		default:
			continue
		}
		select {
		case states <- s:
		case <-ctx.Done():
			return
		}
	}
}

// stream returns the stream of the Secret.
func (c secretClient) stream() wire.Stream {
	return wire.Stream{Resource: Resource(), Namespace: c.namespace, FieldSelector: "metadata.name=" + c.name}
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
