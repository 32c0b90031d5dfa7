package operator

import (
	"context"
	"time"

	"github.com/yare-go/yare/operator/internal/webhook/admission"
)

// partWithWebhook is a part with a webhook that the API server calls before it stores an object.
type partWithWebhook interface{ webhook() *admission.Webhook }

// webhookService serves all webhooks of a program.
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

// webhooksOf returns the webhooks of parts, also those of parts inside of other parts. A converter is none of them.
func webhooksOf(parts []Part) (all []*admission.Webhook) {
	for _, part := range partsWithin(parts) {
		if p, ok := part.(partWithWebhook); ok {
			all = append(all, p.webhook())
		}
	}
	return all
}

// hasWebhooksOrConverters reports whether API servers call the program for at least one of parts.
func hasWebhooksOrConverters(parts []Part) bool {
	_, err := webhookCodeIn(parts)
	return err == nil
}

// unservedWebhooks is the service of a program without webhooks, or with webhooks that are not served.
type unservedWebhooks struct{}

func (unservedWebhooks) start(context.Context, webhookRuntime) error { return nil }
func (unservedWebhooks) unreadyReasons() []string                    { return nil }
func (unservedWebhooks) certificateEnds() map[string]time.Time       { return nil }
func (unservedWebhooks) end()                                        {}
