package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Confinement is a [Hook] that confines a program to one namespace:
//
//   - Lists and watches of all namespaces become lists and watches of the namespace.
//   - Writes of objects in other namespaces are refused with 403, and so are writes of namespaces that the program
//     has not created.
//   - What the program creates in no namespace is recorded, so that [Confinement.RemoveCreated] removes it.
//
// With an empty namespace, only the creations are recorded.
type Confinement struct {
	namespace string
	// user is the user whom all requests impersonate. The program itself must not impersonate anybody then.
	user  string
	admin *Upstream

	mu sync.Mutex
	// scopes holds for the paths of resources whether their objects are in namespaces.
	scopes map[string]bool
	// created holds the paths of the objects in no namespace that the program has created.
	created []string
}

// NewConfinement returns a confinement to a namespace. The proxy sends requests with the rights of target. The
// confinement itself reads the discovery and removes objects as admin.
func NewConfinement(namespace string, target *kube.Config, admin *Upstream) *Confinement {
	return &Confinement{namespace: namespace, user: target.Impersonate.UserName, admin: admin, scopes: map[string]bool{}}
}

// RoundTrip implements [Hook].
func (c *Confinement) RoundTrip(x *Exchange, r *http.Request, next Next) (*http.Response, error) {
	isClusterScoped := x.isStored() && x.Namespace == "" && x.Query.Get("dryRun") == ""
	isOutOfBounds := c.isOutOfBounds(x)
	x.Record(func(r *RequestRecord) { r.IsClusterScoped, r.IsOutOfBounds = isClusterScoped, isOutOfBounds })
	forbidden := func(format string, args ...any) (*http.Response, error) {
		message := fmt.Sprintf("%s is forbidden: ", x.Recorded()) + fmt.Sprintf(format, args...)
		return Answer(NewStatus(http.StatusForbidden, metav1.StatusReasonForbidden, message)), nil
	}
	if isOutOfBounds {
		return forbidden("the run may write in the namespace %s only", c.namespace)
	}
	if other := r.Header.Get("Impersonate-User"); c.user != "" && other != "" {
		return forbidden("the program has the rights of %s, and may not impersonate %s", c.user, other)
	}
	response, err := next(r)
	if err == nil && isClusterScoped && x.Subresource == "" && response.StatusCode == http.StatusCreated {
		err = c.recordCreated(x, response)
	}
	return response, err
}

// isOutOfBounds reports whether a write is refused, because it concerns an object in another
// namespace, or a namespace that is neither the run's nor created by the program.
func (c *Confinement) isOutOfBounds(x *Exchange) bool {
	switch {
	case c.namespace == "" || !x.isStored():
		return false
	case x.Resource == "namespaces":
		c.mu.Lock()
		defer c.mu.Unlock()
		return x.Name != "" && x.Name != c.namespace && !slices.Contains(c.created, "/api/v1/namespaces/"+x.Name)
	default:
		return x.Namespace != "" && x.Namespace != c.namespace
	}
}

// recordCreated records the path of an object that the program has created.
func (c *Confinement) recordCreated(x *Exchange, response *http.Response) error {
	created := x.Path
	if x.Verb == wire.VerbCreate {
		body, err := ReadBody(response)
		if err != nil {
			return err
		}
		var object struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal(body, &object); err != nil {
			return fmt.Errorf("the answer to %s: %w", x.Recorded(), err)
		}
		created += "/" + object.Metadata.Name
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.created, created) {
		c.created = append(c.created, created)
	}
	return nil
}

// Created returns the paths of the objects in no namespace that the program has created, in the order of their
// creation.
func (c *Confinement) Created() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.created)
}

// RemoveCreated removes the objects in no namespace that the program has created, the last one first. All processes
// of the program must have ended.
func (c *Confinement) RemoveCreated(ctx context.Context) error {
	c.mu.Lock()
	created := c.created
	c.created = nil
	c.mu.Unlock()
	var errs []error
	for _, path := range slices.Backward(created) {
		errs = append(errs, c.admin.Remove(ctx, path))
	}
	return errors.Join(errs...)
}

// Narrowing returns the [Hook] that changes lists and watches of all namespaces. It comes after all hooks that answer
// requests, so that they see what the program asks for.
func (c *Confinement) Narrowing() Hook { return HookFunc(c.narrow) }

// narrow changes the URL of a list or a watch of all namespaces to the URL of one namespace.
func (c *Confinement) narrow(x *Exchange, r *http.Request, next Next) (*http.Response, error) {
	isOfAll := x.Resource != "" && x.Namespace == "" && x.Name == "" &&
		(x.Verb == wire.VerbList || x.Verb == wire.VerbWatch)
	if c.namespace == "" || !isOfAll {
		return next(r)
	}
	if x.Resource == "namespaces" {
		query := r.URL.Query()
		query.Set("fieldSelector", narrowNames(query.Get("fieldSelector"), c.namespace))
		r.URL.RawQuery = query.Encode()
		return next(r)
	}
	version, plural := path.Split(r.URL.Path)
	isNamespaced, isServed, err := c.scopeOf(r.Context(), version, plural)
	switch {
	case err != nil:
		return Answer(NewStatus(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())), nil
	case !isServed:
		// The server may serve a resource before its discovery lists the resource.
		return Answer(NewStatus(http.StatusNotFound, metav1.StatusReasonNotFound,
			"the server could not find the requested resource")), nil
	case isNamespaced:
		r.URL.Path, r.URL.RawPath = fmt.Sprintf("%snamespaces/%s/%s", version, c.namespace, plural), ""
	}
	return next(r)
}

// scopeOf reports whether the objects of a resource are in namespaces, in the version of an API group that a path such
// as /apis/apps/v1/ names. It also reports whether the server serves the resource.
func (c *Confinement) scopeOf(ctx context.Context, version, plural string) (isNamespaced, isServed bool, err error) {
	c.mu.Lock()
	isNamespaced, isServed = c.scopes[version+plural]
	c.mu.Unlock()
	if isServed {
		return isNamespaced, true, nil
	}
	var list metav1.APIResourceList
	if _, err := c.admin.Get(ctx, path.Clean(version), nil, &list); err != nil {
		return false, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range list.APIResources {
		c.scopes[version+r.Name] = r.Namespaced
	}
	isNamespaced, isServed = c.scopes[version+plural]
	return isNamespaced, isServed, nil
}

// narrowNames returns a field selector with the terms of another one, and with a term that selects a name. It
// returns a selector that has such a term unchanged, because reads of one other object are allowed.
func narrowNames(selector, name string) string {
	const field = "metadata.name="
	terms := strings.Split(selector, ",")
	if slices.ContainsFunc(terms, func(term string) bool { return strings.HasPrefix(term, field) }) {
		return selector
	}
	return strings.TrimPrefix(selector+","+field+name, ",")
}
