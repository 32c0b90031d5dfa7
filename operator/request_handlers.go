package operator

import (
	"slices"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/problems"
)

// newFencedClient returns the client of a program with its own connections. fence may be nil.
//
// It puts the fence directly above the transport, as number 15 of the handlers in docs/architecture.md. So the fence
// checks each repetition of a request.
func newFencedClient(config *kube.Config, fence *lease.Fence) (*kube.Client, error) {
	if fence != nil {
		config = config.Clone()
		config.WrapAttempts = fence.Handler
	}
	return kube.NewClient(config)
}

// addRequestHandlers returns c with the handlers that this package adds to all requests of the parts.
// docs/architecture.md numbers all handlers of a request. This function adds the numbers 7 to 11. A request passes from
// the first to the last:
//
//	…6  the handlers of a controller (controller/pipeline.go)
//	7   labelGuard        refuses an apply that would take over somebody else's object by a label of OwnsByLabel
//	8   RefuseUndeclared  in tests and yare dev, refuses what no part declares
//	9   requestMetrics    counts, if the program serves metrics
//	10  wire.tracing      records a span, if the program has a Tracer
//	11  problems.Reporter logs problems that last
//	12… the handlers of kube.NewClient, which repeat requests and limit the writes in flight, and the fence
//
// So a request that is refused as undeclared is not counted. A request that is repeated counts once.
func addRequestHandlers(c *kube.Client, env environment, needs kube.Needs, requests *requestMetrics) *kube.Client {
	var handlers []func(wire.Handler) wire.Handler
	if len(needs.OwnerLabels) > 0 {
		handlers = append(handlers, func(next wire.Handler) wire.Handler { return &labelGuard{next, needs.OwnerLabels} })
	}
	if env.features.program.IsStrict {
		handlers = append(handlers, problems.RefuseUndeclared(access.NewChecker(needs, c.Namespaces(), env.namespace)))
	}
	if requests != nil {
		handlers = append(handlers, requests.handler)
	}
	handlers = append(handlers, wire.Trace(env.tracer))
	if env.problems != nil {
		handlers = append(handlers, env.problems.Handler)
	}
	for _, handler := range slices.Backward(handlers) {
		c = c.With(handler)
	}
	return c
}
