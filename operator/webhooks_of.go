package operator

import (
	"context"
	"time"

	"github.com/yare-go/yare/operator/internal/webhook/admission"
)

// A webhookSource is a part with a webhook. A program finds a [webhookPart] or a [converterPart] by this interface alone. So
// the linker leaves the code of webhooks out of a program without one.
type webhookSource interface {
	// webhook returns the webhook of the part, or nil if the part has a converter.
	webhook() *admission.Webhook
	webhookCode
}

// A webhookService serves all webhooks of a program.
type webhookService interface {
	// start begins to serve. It returns an error if the webhooks cannot be served.
	start(ctx context.Context, rt webhookRuntime) error
	// unreadyReasons returns why the replica is not ready.
	unreadyReasons() []string
	// certificateEnds returns when the certificates end, by what they are for.
	certificateEnds() map[string]time.Time
	// end serves until the API servers have found other replicas, and releases everything. It does so too if start was
	// not called.
	end()
}

// webhookSourcesOf returns the parts with a webhook, also those inside of other parts.
func webhookSourcesOf(parts []Part) (all []webhookSource) {
	for _, part := range parts {
		if source, ok := unwrapped[webhookSource](part); ok {
			all = append(all, source)
		}
	}
	return all
}

// webhooksOf returns the webhooks of parts that the API server calls before it stores an object.
func webhooksOf(parts []Part) (all []*admission.Webhook) {
	for _, source := range webhookSourcesOf(parts) {
		if w := source.webhook(); w != nil {
			all = append(all, w)
		}
	}
	return all
}

// hasWebhooks reports whether at least one of parts has a webhook.
func hasWebhooks(parts []Part) bool { return len(webhookSourcesOf(parts)) > 0 }

// unservedWebhooks is the service of a program without webhooks, or with webhooks that are not served.
type unservedWebhooks struct{}

func (unservedWebhooks) start(context.Context, webhookRuntime) error { return nil }
func (unservedWebhooks) unreadyReasons() []string                    { return nil }
func (unservedWebhooks) certificateEnds() map[string]time.Time       { return nil }
func (unservedWebhooks) end()                                        {}
