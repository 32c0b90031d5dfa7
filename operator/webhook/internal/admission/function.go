package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube/wire"
)

// callFunction calls the function of e, and returns the answer when the function has returned or ctx has ended. It
// calls release when the function has returned.
func callFunction(ctx context.Context, h *Handler, e *endpoint, r *request, release func()) *answer {
	answers := make(chan *answer, 1)
	h.capacity.Begin()
	go func() {
		defer h.capacity.End()
		defer release()
		var a *answer
		defer func() {
			if a == nil { // the function panicked or, if the value is nil, it ended the goroutine
				a = failedAnswer(fmt.Sprintf("%s panicked or ended its goroutine: %v", e.webhook, recover()))
				a.stack = logctx.PanicStack()
			}
			answers <- a
		}()
		a = e.webhook.answerRequest(ctx, e, r)
	}()
	reason := errors.New("it has not returned")
	select {
	case a := <-answers:
		if a.httpCode == 0 || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return a
		}
		reason = a.err
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return unavailableAnswer(ctx.Err()) // the API server does not wait any more
		}
	}
	a := refusedAnswer(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
		e.webhook.String()+" did not answer in time: "+reason.Error())
	a.result = ResultFailed
	return a
}

// readOnly returns a function that puts a handler before another one. The handler passes reads on, and returns an error
// for a write.
func readOnly(w *Webhook) func(wire.Handler) wire.Handler {
	return func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if !r.Verb.IsWrite() {
				return next.Do(ctx, r)
			}
			e := wire.NewError(r)
			e.Permanent = true
			e.Err = errors.New(w.String() + " must not write: do this in a reconcile")
			return nil, e
		})
	}
}
