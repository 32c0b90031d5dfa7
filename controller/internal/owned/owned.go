// Package owned carries in the contexts of reconciles what package controller/children needs to know of their controller.
package owned

import (
	"context"
	"sync"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Controller is what the sets of children of one controller share. The methods are safe for concurrent use.
type Controller struct {
	// Kinds are the kinds of controller.Owns.
	Kinds []Kind
	// Events is the recorder of the program, or nil.
	Events interface {
		Warning(obj kube.Object, reason, action, note string, args ...any)
	}

	mu       sync.Mutex
	reported map[string]bool
}

// Kind is a kind that a controller owns.
type Kind struct {
	Resource wire.Resource
	// Namespaces are the namespaces in which the kind is watched. It is empty for those of the client.
	Namespaces []string
	// IsPartial is true if the watch leaves objects out.
	IsPartial bool
}

type contextKey struct{}

// With returns a context of reconciles of c.
func With(ctx context.Context, c *Controller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From returns the controller of a reconcile. For every other context it returns an empty one.
func From(ctx context.Context) *Controller {
	if c, ok := ctx.Value(contextKey{}).(*Controller); ok {
		return c
	}
	return new(Controller)
}

// maxReported bounds how many different reports a controller remembers. Later ones are not logged.
const maxReported = 1000

// MarkReported records that a text is logged, and returns whether it is the first time.
func (c *Controller) MarkReported(text string) (isFirst bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reported[text] || len(c.reported) >= maxReported {
		return false
	}
	if c.reported == nil {
		c.reported = make(map[string]bool)
	}
	c.reported[text] = true
	return true
}
