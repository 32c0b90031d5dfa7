package followed

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Address is where an object is. It is safe for concurrent use.
type Address struct {
	Resource wire.Resource
	// Key has no namespace if the object is outside of namespaces.
	kube.Key
}

// head has the resourceVersion of an object or of a list.
type head struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// String returns the kind and the name of the object.
func (a Address) String() string { return a.Resource.Kind + " " + a.Key.String() }

// stream returns the stream that has the object alone.
func (a Address) stream() wire.Stream {
	return wire.Stream{Resource: a.Resource, Namespace: a.Namespace, FieldSelector: "metadata.name=" + a.Name}
}

// request returns a request for the object by its name.
func (a Address) request(verb wire.Verb) *wire.Request {
	r := a.stream().Request(verb)
	r.Query.Del("fieldSelector")
	r.Name = a.Name
	return r
}

// read decodes the object as the server has it, and returns its resourceVersion. If the object does not exist, read
// leaves object as it is, and returns the resourceVersion of the list.
func (a Address) read(ctx context.Context, client *kube.Client, object any) (version string, err error) {
	r := a.stream().Request(wire.VerbList)
	r.Live = true
	response, err := client.Do(ctx, r)
	if err != nil {
		return "", err
	}
	var list struct {
		head
		Items []jsontext.Value `json:"items"`
	}
	err = kube.Unmarshal(response.Body, &list)
	if err == nil && len(list.Items) == 0 {
		return list.Metadata.ResourceVersion, nil
	}
	var item head
	if err != nil || len(list.Items) > 1 || kube.Unmarshal(list.Items[0], &item) != nil ||
		kube.Unmarshal(list.Items[0], object) != nil {
		return "", fmt.Errorf("the answer to a list of the %s is not that of a Kubernetes API", a)
	}
	return item.Metadata.ResourceVersion, nil
}

// write sends a patch of the object, as [Reference.Write] does. It decodes what the server has stored, and returns the
// resourceVersion of that.
func (a Address) write(
	ctx context.Context, client *kube.Client, contentType string, patch any, preconditions wire.Preconditions, object any,
) (version string, err error) {
	body, err := kube.Marshal(patch)
	if err != nil {
		return "", err
	}
	r := a.request(wire.VerbPatch)
	r.Query.Set("fieldManager", client.FieldManager())
	if contentType == wire.ContentApply {
		r.Query.Set("force", "true")
	}
	r.ContentType, r.Body, r.Preconditions = contentType, body, preconditions
	response, err := client.Do(ctx, r)
	if err != nil {
		return "", err
	}
	var stored head
	err = a.decode(response.Body, object)
	if err == nil {
		err = kube.Unmarshal(response.Body, &stored)
	}
	return stored.Metadata.ResourceVersion, err
}

// Delete sends a request that deletes the object. options are DeleteOptions as JSON.
func (a Address) Delete(
	ctx context.Context, client *kube.Client, options []byte, preconditions wire.Preconditions,
) error {
	r := a.request(wire.VerbDelete)
	r.Body, r.Preconditions = options, preconditions
	_, err := client.Do(ctx, r)
	return err
}

// watch calls observe with the resourceVersion of each state of the object until ctx ends. decode decodes the object.
// It leaves the object as it is if the object does not exist, and returns the error of the watch if there is one.
func (a Address) watch(
	ctx context.Context, client *kube.Client, observe func(version string, decode func(object any) error),
) {
	for state, err := range follow.ObjectStates(ctx, client, a.stream()) {
		observe(state.ResourceVersion, func(object any) error {
			if err != nil || state.Object == nil {
				return err
			}
			return a.decode(state.Object, object)
		})
	}
}

// decode decodes the object. The error does not have the content, which can be secret.
func (a Address) decode(content []byte, object any) error {
	if kube.Unmarshal(content, object) != nil {
		return fmt.Errorf("the %s is not that of a Kubernetes API", a)
	}
	return nil
}
