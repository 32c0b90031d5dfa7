package operator

import "github.com/yare-go/yare/operator/internal/webhook/admission"

// partWithWebhook is a part with a webhook that the API server calls before it stores an object.
type partWithWebhook interface{ webhook() *admission.Webhook }

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
