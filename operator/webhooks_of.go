package operator

import "github.com/yare-go/yare/operator/internal/webhook/admission"

// A webhookPart is a part that brings a webhook. A program finds its webhooks by this interface alone. So the linker
// leaves the code that serves webhooks out of a program without such a part.
type webhookPart interface {
	webhook() *admission.Webhook
}

// webhooksOf returns the webhooks of parts, in the order of the parts.
func webhooksOf(parts []Part) (all []*admission.Webhook) {
	for _, part := range parts {
		if p, ok := part.(webhookPart); ok {
			all = append(all, p.webhook())
		}
	}
	return all
}

// webhookRoles reports which kinds of webhooks there are.
func webhookRoles(webhooks []*admission.Webhook) (hasValidators, hasDefaulters bool) {
	for _, w := range webhooks {
		hasDefaulters = hasDefaulters || w.IsDefaulter
		hasValidators = hasValidators || !w.IsDefaulter
	}
	return hasValidators, hasDefaulters
}
