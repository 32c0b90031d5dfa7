package kube

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Replicas is the scale subresource: the wanted and the observed number of replicas.
type Replicas struct {
	metav1.TypeMeta   `json:""`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas int32  `json:"replicas"`
		Selector string `json:"selector,omitempty"`
	} `json:"status,omitzero"`
}

// GetScale reads the scale subresource of the object of that name.
func (a API[T]) GetScale(ctx context.Context, name string) (*Replicas, error) {
	if err := a.requireName(VerbGet, name); err != nil {
		return nil, err
	}
	a.subresource = "scale"
	return a.scale(ctx, a.request(VerbGet, name))
}

// SetScale sets the wanted number of replicas, whatever it was, and returns what the server stored.
func (a API[T]) SetScale(ctx context.Context, name string, replicas int32, options ...WriteOption) (*Replicas, error) {
	if err := a.requireName(VerbPatch, name); err != nil {
		return nil, err
	}
	a.subresource = "scale"
	r := a.request(VerbPatch, name)
	r.Query = a.writeQuery(options)
	r.ContentType = ContentMergePatch
	r.Body = []byte(`{"spec":{"replicas":` + strconv.Itoa(int(replicas)) + `}}`)
	return a.scale(ctx, r)
}

func (a resourceView) scale(ctx context.Context, r *Request) (*Replicas, error) {
	response, err := a.client.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	s := &Replicas{}
	if err := Unmarshal(response.Body, s); err != nil {
		return nil, &DecodeError{Ref: r.Ref(), Err: err}
	}
	return s, nil
}
