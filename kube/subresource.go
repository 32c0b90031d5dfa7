package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan/kubejson"
	"github.com/yare-go/yare/kube/wire"
)

// CreateSubresource creates a subresource of the object of that name, and returns the answer as an Answer.
// The subresource determines the kinds of body and answer:
//
//	token, err := kube.CreateSubresource[authenticationv1.TokenRequest](ctx, accounts, "robot", "token",
//		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}})
//	_, err = kube.CreateSubresource[metav1.Status](ctx, pods, "web-0", "eviction", &policyv1.Eviction{})
//
// A body without a name and a namespace is sent with the object's. A nil body is sent as no
// body. If a disruption budget forbids an eviction for now, [IsTooManyRequests] reports the error, and the
// eviction is not repeated.
func CreateSubresource[Answer, T any](
	ctx context.Context, a API[T], name, subresource string, body any, options ...WriteOption,
) (*Answer, error) {
	answer := new(Answer)
	if err := createSubresource(ctx, a.client, a.target, name, subresource, body, answer, options); err != nil {
		return nil, err
	}
	return answer, nil
}

// createSubresource creates a subresource of an object of t, and decodes the answer.
func createSubresource(
	ctx context.Context, c *Client, t target, name, subresource string, body, answer any, options []WriteOption,
) error {
	if err := cmp.Or(t.requireName(wire.VerbCreate, name), t.rejectSubresource(wire.VerbCreate, name)); err != nil {
		return err
	}
	if err := checkSubresource(subresource); err != nil {
		return fmt.Errorf("create %s of %s %s: %w", subresource, t.resource, ident.Quoted(t.namespace, name), err)
	}
	t.subresource = subresource
	r := t.request(wire.VerbCreate, name)
	r.Query = newWriteOptions(c.manager, options).query()
	if body != nil {
		data, err := Marshal(body)
		if _, ok := body.(Object); ok && err == nil {
			data, err = withIdentity(data, t.namespace, name)
		}
		if err != nil {
			return fmt.Errorf("encode the %s of %s %s: %w", subresource, t.resource, ident.Quoted(t.namespace, name), err)
		}
		r.Body = data
	}
	response, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	if err := kubejson.Decode(response.Body, answer); err != nil {
		return &wire.DecodeError{Ref: r.Ref(), Err: fmt.Errorf("the answer to its %s: %w", subresource, err)}
	}
	return nil
}

// checkSubresource returns an error for what is no name of a subresource.
func checkSubresource(name string) error {
	if name == "" {
		return errors.New("the subresource is empty: name one, such as eviction")
	}
	return checkSegment("subresource", name)
}

// withIdentity returns the JSON of an object with a namespace and a name where it has none.
func withIdentity(object []byte, namespace, name string) ([]byte, error) {
	members := make(map[string]jsontext.Value)
	if err := Unmarshal(object, &members); err != nil {
		return nil, err
	}
	metadata := make(map[string]jsontext.Value)
	if len(members["metadata"]) > 0 {
		if err := Unmarshal(members["metadata"], &metadata); err != nil {
			return nil, err
		}
	}
	for member, text := range map[string]string{"namespace": namespace, "name": name} {
		if len(metadata[member]) == 0 && text != "" {
			metadata[member] = appendString(nil, text)
		}
	}
	var err error
	if members["metadata"], err = Marshal(metadata); err != nil {
		return nil, err
	}
	return Marshal(members)
}
