package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// IsReview reports whether a resource is one of the reviews, which ask who somebody is, or what somebody may do.
// A create of a review stores nothing.
func IsReview(resource string) bool {
	_, group, _ := strings.Cut(resource, ".")
	return group == "authorization.k8s.io" || group == "authentication.k8s.io"
}

// recordMade records an object in no namespace that the program has made, so that [Proxy.RemoveMade]
// removes it.
func (p *Proxy) recordMade(e *exchange, response *http.Response) error {
	if !e.ClusterScoped || e.parsed.Subresource != "" || response.StatusCode != http.StatusCreated {
		return nil
	}
	path := e.Path
	if e.parsed.Verb == kube.VerbCreate {
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
		setBody(response, body)
		var object struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal(body, &object); err != nil {
			return fmt.Errorf("the answer to %s: %w", e.Request, err)
		}
		path += "/" + object.Metadata.Name
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.made, path) {
		p.made = append(p.made, path)
	}
	return nil
}

// RemoveMade removes the objects in no namespace that the program has made, the last one first. All lives of
// the program must have ended.
func (p *Proxy) RemoveMade(ctx context.Context) error {
	p.mu.Lock()
	made := p.made
	p.made = nil
	p.mu.Unlock()
	var errs []error
	for _, path := range slices.Backward(made) {
		errs = append(errs, p.admin.remove(ctx, path))
	}
	return errors.Join(errs...)
}

// isOutOfBoundsLocked reports whether a write is refused, because it concerns an object in another
// namespace, or a namespace that is neither the run's nor made by the program.
func (p *Proxy) isOutOfBoundsLocked(e *exchange) bool {
	own := p.options.Namespace
	switch {
	case own == "" || !e.isStored():
		return false
	case e.parsed.Resource == "namespaces":
		return e.parsed.Name != "" && e.parsed.Name != own && !slices.Contains(p.made, "/api/v1/namespaces/"+e.parsed.Name)
	default:
		return e.Namespace != "" && e.Namespace != own
	}
}
