package explore

import (
	"context"
	"fmt"
	"slices"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// recordOutside records what a program has written outside of the namespace of its run: in other namespaces,
// which was refused, and in no namespace.
func (e *explorer) recordOutside(requests []proxy.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range requests {
		switch {
		case r.OutOfBounds:
			e.coverage.OutOfBounds = insert(e.coverage.OutOfBounds, textOfWrite(r))
		case r.ClusterScoped:
			e.coverage.ClusterScoped = insert(e.coverage.ClusterScoped, textOfWrite(r))
		}
	}
}

// textOfWrite returns a write in short, such as: create configmaps a in kube-system.
func textOfWrite(r proxy.Request) string {
	what := r.Point.Resource
	if r.Point.Subresource != "" {
		what += "/" + r.Point.Subresource
	}
	text := fmt.Sprintf("%s %s %s", r.Point.Verb, what, r.Point.Name)
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// insert adds a text to sorted texts, unless it is among them.
func insert(texts []string, text string) []string {
	i, found := slices.BinarySearch(texts, text)
	if found {
		return texts
	}
	return slices.Insert(texts, i, text)
}

// removeCreated removes the objects in no namespace that the program has created in a run.
func removeCreated(p *faults.Proxy) error {
	// The context of the exploration may have ended.
	ctx, cancel := context.WithTimeout(context.Background(), maxRemoval)
	defer cancel()
	return p.RemoveCreated(ctx)
}
