package authorizer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// TokenReviews returns the resource by which an Authorizer asks for the user of a token.
func TokenReviews() wire.Resource {
	return reviewResource("authentication.k8s.io", "TokenReview", "tokenreviews")
}

// SubjectAccessReviews returns the resource by which an Authorizer asks what a user may do.
func SubjectAccessReviews() wire.Resource {
	return reviewResource("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews")
}

func reviewResource(group, kind, plural string) wire.Resource {
	return wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind},
		Plural:           plural, ClusterScoped: true,
	}
}

// The types below are types of k8s.io/api, with only the fields that an Authorizer uses.

type tokenReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Spec struct {
		Token string `json:"token"`
	} `json:"spec"`
	Status struct {
		Authenticated bool     `json:"authenticated"`
		User          userInfo `json:"user"`
	} `json:"status,omitzero"`
}

// userInfo is a user as the cluster knows them.
type userInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

type subjectAccessReview struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Spec struct {
		User   string              `json:"user"`
		UID    string              `json:"uid,omitempty"`
		Groups []string            `json:"groups,omitempty"`
		Extra  map[string][]string `json:"extra,omitempty"`

		NonResourceAttributes struct {
			Path string `json:"path"`
			Verb string `json:"verb"`
		} `json:"nonResourceAttributes"`
	} `json:"spec"`
	Status struct {
		Allowed bool `json:"allowed"`
	} `json:"status,omitzero"`
}

// authenticate returns the user that a token belongs to. It reports whether the cluster accepts the
// token.
func authenticate(ctx context.Context, c *kube.Client, token string) (user userInfo, ok bool, err error) {
	r := TokenReviews()
	t := tokenReview{APIVersion: r.GroupVersion().String(), Kind: r.Kind}
	t.Spec.Token = token
	if err := createReview(ctx, c, r, &t); err != nil {
		return userInfo{}, false, err
	}
	return t.Status.User, t.Status.Authenticated, nil
}

// authorize reports whether a user may do verb to path.
func authorize(ctx context.Context, c *kube.Client, user userInfo, verb, path string) (bool, error) {
	r := SubjectAccessReviews()
	s := subjectAccessReview{APIVersion: r.GroupVersion().String(), Kind: r.Kind}
	s.Spec.User, s.Spec.UID, s.Spec.Groups, s.Spec.Extra = user.Username, user.UID, user.Groups, user.Extra
	s.Spec.NonResourceAttributes.Path, s.Spec.NonResourceAttributes.Verb = path, verb
	if err := createReview(ctx, c, r, &s); err != nil {
		return false, err
	}
	return s.Status.Allowed, nil
}

// createReview creates a review, and replaces it by the answer.
func createReview(ctx context.Context, c *kube.Client, r wire.Resource, review any) error {
	body, err := kube.Marshal(review)
	if err != nil {
		return fmt.Errorf("encode the %s: %w", r.Kind, err)
	}
	response, err := c.Do(ctx, &wire.Request{Verb: wire.VerbCreate, Resource: r, Body: body})
	if err != nil {
		return err
	}
	if err := kube.Unmarshal(response.Body, review); err != nil {
		return fmt.Errorf("decode the answer to the %s: %w", r.Kind, err)
	}
	return nil
}
