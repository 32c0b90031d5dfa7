package kube

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// Scale is the scale subresource: the wanted and the observed number of replicas.
type Scale struct {
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

// getScale reads the scale of an object of t.
func getScale(ctx context.Context, h wire.Handler, t target, name string) (*Scale, error) {
	if err := t.requireName(wire.VerbGet, name); err != nil {
		return nil, err
	}
	t.subresource = "scale"
	return sendScaleRequest(ctx, h, t.request(wire.VerbGet, name))
}

// setScale sets the wanted number of replicas of an object of t.
func setScale(
	ctx context.Context, c *Client, t target, name string, replicas int32, options []WriteOption,
) (*Scale, error) {
	if err := t.requireName(wire.VerbPatch, name); err != nil {
		return nil, err
	}
	t.subresource = "scale"
	r := t.request(wire.VerbPatch, name)
	r.Query, r.ContentType = newWriteOptions(c.manager, options).query(), wire.ContentMergePatch
	r.Body = []byte(`{"spec":{"replicas":` + strconv.Itoa(int(replicas)) + `}}`)
	return sendScaleRequest(ctx, c, r)
}

// sendScaleRequest sends a request about a scale, and decodes the answer.
func sendScaleRequest(ctx context.Context, h wire.Handler, r *wire.Request) (*Scale, error) {
	response, err := h.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	s := &Scale{}
	if err := Unmarshal(response.Body, s); err != nil {
		return nil, &wire.DecodeError{Ref: r.Ref(), Err: err}
	}
	return s, nil
}
