package operator

import (
	"context"
	"errors"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
)

// webhookCodePart is a part that brings the [webhookCode]: each [webhookPart] and each [converterPart].
type webhookCodePart interface{ webhookCode() webhookCode }

// webhookCode acts for all webhooks and converters of a program. A program without any has no code for them: see
// part_code.go.
type webhookCode interface {
	// openWebhooks opens the address of the webhooks.
	openWebhooks(ctx context.Context, s webhookSettings) (webhookService, error)
	// checkDuplicates returns an error for each webhook that is declared twice.
	checkDuplicates(webhooks []*admission.Webhook) error
	// planWebhooks returns what an installation has for its webhooks.
	planWebhooks(p webhookPlanner) (webhookPlan, error)
	// webhookAccess returns the permissions to issue certificates and to publish the webhooks and conversions of parts.
	webhookAccess(name, namespace string, parts []Part) []kube.Access
	// searchWebhookConflicts notes the webhooks of others that API servers call beside webhooks. It sets c.Webhooks.
	searchWebhookConflicts(ctx context.Context, c *manifests.WebhookConflicts, webhooks []*admission.Webhook) error
	// revokeAuthority runs the command [revokeCommand].
	revokeAuthority(ctx context.Context, i invocation, line *commandLine) error
}

// webhookCodeIn returns the code that parts bring, or an error if the program has neither webhooks nor converters.
func webhookCodeIn(parts []Part) (webhookCode, error) {
	for _, part := range partsWithin(parts) {
		if p, ok := part.(webhookCodePart); ok {
			return p.webhookCode(), nil
		}
	}
	return nil, errors.New(
		"the program has no webhooks: add operator.Validate, operator.Default or operator.Convert to its parts")
}

// linkedWebhookCode makes each part that embeds it a [webhookCodePart].
type linkedWebhookCode struct{}

func (linkedWebhookCode) webhookCode() webhookCode { return &programWebhookCode{} }

// programWebhookCode implements [webhookCode].
type programWebhookCode struct{}

// openWebhooks opens the address of the webhooks, and reads the files of their certificate.
func (*programWebhookCode) openWebhooks(ctx context.Context, s webhookSettings) (webhookService, error) {
	return openServedWebhooks(ctx, s)
}

// checkDuplicates returns an error for each webhook that is declared twice.
func (*programWebhookCode) checkDuplicates(webhooks []*admission.Webhook) error {
	return admission.CheckDuplicates(webhooks)
}

// planWebhooks returns what an installation has for its webhooks.
func (*programWebhookCode) planWebhooks(p webhookPlanner) (webhookPlan, error) { return p.plan() }

// webhookAccess returns what the function [webhookAccess] returns.
func (*programWebhookCode) webhookAccess(name, namespace string, parts []Part) []kube.Access {
	return webhookAccess(name, namespace, parts)
}

// searchWebhookConflicts notes the webhooks of others that API servers call beside webhooks. It sets c.Webhooks.
func (*programWebhookCode) searchWebhookConflicts(
	ctx context.Context, c *manifests.WebhookConflicts, webhooks []*admission.Webhook,
) error {
	for _, w := range webhooks {
		c.Webhooks = append(c.Webhooks, w.Name())
	}
	return c.Search(ctx)
}

// revokeAuthority does what [revokeWebhookAuthority] does.
func (*programWebhookCode) revokeAuthority(ctx context.Context, i invocation, line *commandLine) error {
	return revokeWebhookAuthority(ctx, i, line)
}
