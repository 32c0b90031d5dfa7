package webhook

import (
	"context"
	"slices"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
)

// handler answers the calls to the webhooks of a program.
type handler struct {
	webhooks []*admission.Webhook
	watched  []string
	// Handler is nil before Prepare.
	*admission.Handler
}

// Declare returns nothing: see [calls.Handler].
func (*handler) Declare() feature.Declaration { return feature.Declaration{} }

// Access returns nothing: a validator declares what it reads.
func (*handler) Access() []kube.Access { return nil }

// AddTo changes nothing: package calls adds the webhook configurations.
func (*handler) AddTo(objects []manifests.Object, _ manifests.Installation) []manifests.Object {
	return objects
}

// Entries returns the entries of the webhooks: see [calls.EntryMaker].
func (h *handler) Entries(target configuration.Target) (validating, mutating []*configuration.Entry, err error) {
	return admission.Entries(h.webhooks, target)
}

// CheckDefinitions returns nil: see [calls.Checker].
func (*handler) CheckDefinitions(
	context.Context, *kube.Client, []*crd.CustomResourceDefinition, manifests.Installation, bool,
) error {
	return nil
}

// CheckObjects prints the webhooks of others that API servers call too: see [calls.Checker].
func (h *handler) CheckObjects(
	ctx context.Context, client *kube.Client, i manifests.Installation, printNote func(string),
) error {
	c := &conflicts{Installation: i, client: client, watched: h.watched, printNote: printNote}
	for _, w := range h.webhooks {
		c.webhooks = append(c.webhooks, w.Name())
		if w.IsForeign() {
			c.foreign = append(c.foreign, w.Name())
		}
	}
	return c.search(ctx)
}

// Prepare makes the handler of the functions, which read by the cache: see [calls.Handler].
func (h *handler) Prepare(s *calls.Service) (err error) {
	h.Handler, err = admission.NewHandler(h.webhooks, admission.Options{
		Client:     s.Host.WithHandlers(s.Client).With(s.Host.Runtime.Cache.Handler),
		Namespaces: s.Program.Watched, IsStrict: s.Program.IsStrict, Logger: s.Host.Runtime.Log,
		Observer: newCallMetrics(s.Metrics, h.webhooks),
	})
	return err
}

// HasPath reports whether a path is that of a webhook.
func (h *handler) HasPath(path string) bool {
	return slices.ContainsFunc(h.webhooks, func(w *admission.Webhook) bool { return w.Path() == path })
}

// Start does nothing: package calls publishes the webhooks.
func (*handler) Start(context.Context, *calls.Service) error { return nil }

// Ready returns nil: the functions need nothing else.
func (*handler) Ready() error { return nil }
