package publishing

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// object is a webhook configuration, or a Namespace, with the fields that this package reads. The types of k8s.io/api would
// be linked for nothing else. The zero value stands for an object that does not exist.
type object struct {
	Metadata metadata `json:"metadata"`
	// Webhooks are the entries of a configuration. A Namespace has none.
	Webhooks []entry `json:"webhooks"`
}

type metadata struct {
	Name              string                  `json:"name"`
	UID               types.UID               `json:"uid"`
	ResourceVersion   string                  `json:"resourceVersion"`
	DeletionTimestamp string                  `json:"deletionTimestamp"`
	OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
}

// exists reports whether the object exists.
func (o *object) exists() bool { return o.Metadata.UID != "" }

// objectClient reads and writes one object.
type objectClient struct {
	// stream is the stream of the object.
	stream wire.Stream
	name   string
}

func newObjectClient(r wire.Resource, name string) objectClient {
	return objectClient{wire.Stream{Resource: r, FieldSelector: "metadata.name=" + name}, name}
}

// String returns the kind and the name of the object.
func (c objectClient) String() string { return c.stream.Resource.Kind + " " + c.name }

// observation is a state of the object.
type observation struct {
	live *object
	// version is a resourceVersion at which the object had this state.
	version string
}

// read returns the object as the server has it. The request is a list, because a watch needs this permission anyway.
func (c objectClient) read(ctx context.Context, client *kube.Client) (observation, error) {
	r := c.stream.Request(wire.VerbList)
	r.Live = true
	response, err := client.Do(ctx, r)
	if err != nil {
		return observation{}, err
	}
	var list struct {
		Metadata metadata  `json:"metadata"`
		Items    []*object `json:"items"`
	}
	if err := kube.Unmarshal(response.Body, &list); err != nil || len(list.Items) > 1 {
		return observation{}, fmt.Errorf("the answer to a list of the %s is not that of a Kubernetes API", c)
	}
	if len(list.Items) == 0 {
		return observation{new(object), list.Metadata.ResourceVersion}, nil
	}
	return observation{list.Items[0], list.Items[0].Metadata.ResourceVersion}, nil
}

// sent is what a write sends: a configuration to create, or a merge patch of a configuration.
type sent struct {
	APIVersion string       `json:"apiVersion,omitempty"`
	Kind       string       `json:"kind,omitempty"`
	Metadata   sentMetadata `json:"metadata"`
	Webhooks   []entry      `json:"webhooks"`
}

type sentMetadata struct {
	Name            string                  `json:"name,omitempty"`
	UID             types.UID               `json:"uid,omitempty"`
	ResourceVersion string                  `json:"resourceVersion"`
	Labels          map[string]string       `json:"labels,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

// create creates a configuration with labels, as wanted says. It is an apply, because the permission for an apply that
// creates can name the object. It fails if the configuration exists: see isOutdated.
func (c objectClient) create(ctx context.Context, client *kube.Client, labels map[string]string, wanted *plan) (observation, error) {
	return c.write(ctx, client, wire.ContentApply, &sent{
		APIVersion: c.stream.Resource.GroupVersion().String(), Kind: c.stream.Resource.Kind,
		Metadata: sentMetadata{Name: c.name, ResourceVersion: ident.NeverVersion, Labels: labels, OwnerReferences: wanted.owners},
		Webhooks: wanted.entries,
	})
}

// change changes the configuration live, as wanted says. It fails if the server has another version: see isOutdated.
func (c objectClient) change(ctx context.Context, client *kube.Client, live *object, wanted *plan) (observation, error) {
	return c.write(ctx, client, wire.ContentMergePatch, &sent{
		Metadata: sentMetadata{UID: live.Metadata.UID, ResourceVersion: live.Metadata.ResourceVersion, OwnerReferences: wanted.owners},
		Webhooks: wanted.entries,
	})
}

func (c objectClient) write(ctx context.Context, client *kube.Client, contentType string, s *sent) (observation, error) {
	body, err := kube.Marshal(s)
	if err != nil {
		return observation{}, err
	}
	r := c.request(wire.VerbPatch)
	r.Query.Set("fieldManager", client.FieldManager())
	if contentType == wire.ContentApply {
		r.Query.Set("force", "true")
	}
	r.ContentType, r.Body = contentType, body
	r.Preconditions = wire.Preconditions{UID: s.Metadata.UID, ResourceVersion: s.Metadata.ResourceVersion}
	response, err := client.Do(ctx, r)
	if err != nil {
		return observation{}, err
	}
	return c.decode(response.Body)
}

// delete deletes the object live. It fails if the server has another version: see isOutdated.
func (c objectClient) delete(ctx context.Context, client *kube.Client, live *object) error {
	body, err := kube.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &live.Metadata.UID, ResourceVersion: &live.Metadata.ResourceVersion},
	})
	if err != nil {
		return err
	}
	r := c.request(wire.VerbDelete)
	r.Body, r.Preconditions = body, wire.Preconditions{UID: live.Metadata.UID, ResourceVersion: live.Metadata.ResourceVersion}
	_, err = client.Do(ctx, r)
	return err
}

// request returns a request for the object by its name.
func (c objectClient) request(verb wire.Verb) *wire.Request {
	r := c.stream.Request(verb)
	r.Query.Del("fieldSelector")
	r.Name = c.name
	return r
}

func (c objectClient) decode(content []byte) (observation, error) {
	live := new(object)
	if err := kube.Unmarshal(content, live); err != nil {
		return observation{}, fmt.Errorf("the %s is not that of a Kubernetes API: %w", c, err)
	}
	return observation{live, live.Metadata.ResourceVersion}, nil
}

// watch calls observe with each state of the object, or with an error of the watch, which then goes on. It ends when ctx
// ends.
func (c objectClient) watch(ctx context.Context, client *kube.Client, observe func(observation, error)) {
	for state, err := range follow.Object(ctx, client, c.stream) {
		o := observation{new(object), state.ResourceVersion}
		if err == nil && state.Object != nil {
			o, err = c.decode(state.Object)
		}
		observe(o, err)
	}
}

// isOutdated reports whether a write was refused because the object is not the one that the write names.
func isOutdated(err error) bool {
	return kube.IsConflict(err) || kube.IsUIDConflict(err) || kube.IsNotFound(err)
}
