package operator

import "github.com/yare-go/yare/operator/internal/webhook/admission"

// A webhookSource is a part with a webhook. A program finds such a part by this interface alone. So the linker leaves
// the code of webhooks out of a program without one.
type webhookSource interface {
	webhook() *admission.Webhook
	webhookCommander
}

// webhookSourcesOf returns the parts with a webhook, also those inside of other parts.
func webhookSourcesOf(parts []Part) (all []webhookSource) {
	for _, part := range parts {
		for part != nil {
			if source, ok := part.(webhookSource); ok {
				all = append(all, source)
				break
			}
			wrapper, ok := part.(interface{ Unwrap() Part })
			if !ok {
				break
			}
			part = wrapper.Unwrap()
		}
	}
	return all
}

// webhooksOf returns the webhooks of parts.
func webhooksOf(parts []Part) (all []*admission.Webhook) {
	for _, source := range webhookSourcesOf(parts) {
		all = append(all, source.webhook())
	}
	return all
}
