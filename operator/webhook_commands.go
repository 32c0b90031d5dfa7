package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/live"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
	"github.com/yare-go/yare/operator/internal/webhook/certificates"
	"github.com/yare-go/yare/operator/internal/webhook/configuration"
)

// A webhookCommander has the code of the commands that only programs with webhooks have. Each [webhookPart] is one.
// The linker leaves the code out of a program without such a part.
type webhookCommander interface {
	configurationEntries(webhooks []*admission.Webhook, t webhookTarget) (validating, mutating []any, err error)
	revokeAuthority(ctx context.Context, r authorityRevocation) error
}

// webhookCommanderIn returns a part of a program with webhooks, or an error if there is none.
func webhookCommanderIn(parts []Part) (webhookCommander, error) {
	for _, part := range parts {
		if c, ok := part.(webhookCommander); ok {
			return c, nil
		}
	}
	return nil, errors.New("the program has no webhooks: add operator.Validate or operator.Default to its parts")
}

// webhookTarget is where the API server calls the webhooks of an installation, and for which namespaces.
type webhookTarget struct {
	service, namespace string
	// watched are the namespaces that the program watches. None means all.
	watched []string
}

// authorityRevocation describes an installation whose webhook authorities are to be revoked.
type authorityRevocation struct {
	// name is that of the objects, and namespace is where they are.
	name, namespace string
	// client has the field manager of the program.
	client *kube.Client
	out    io.Writer
	log    *slog.Logger
}

// webhookCommands makes each part that embeds it a [webhookCommander].
type webhookCommands struct{}

// configurationEntries returns the entries of both configurations in full, without bundles.
func (webhookCommands) configurationEntries(webhooks []*admission.Webhook, t webhookTarget) (validating, mutating []any, err error) {
	v, m, err := configuration.Entries(webhooks, configuration.Target{ServiceNamespace: t.namespace, ServiceName: t.service, Namespaces: t.watched})
	for _, entry := range v {
		validating = append(validating, entry)
	}
	for _, entry := range m {
		mutating = append(mutating, entry)
	}
	return validating, mutating, err
}

// revokeAuthority replaces the authorities in the Secret of an installation by a new one, and revokes them and those of
// the published bundles.
func (webhookCommands) revokeAuthority(ctx context.Context, r authorityRevocation) error {
	secret := manifests.WebhookSecretName(r.name)
	_, exists, err := live.Find(ctx, r.client, certificates.Resource(), r.namespace, secret)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("there is no Secret %s/%s: give --namespace and --name-prefix of the installation. With --webhook-cert or --webhook-secret the program issues no certificates, so replace that Secret instead", r.namespace, secret)
	}
	var bundles [][]byte
	published := make(map[string]bool)
	for _, resource := range manifests.WebhookConfigurations() {
		c, exists, err := live.Find(ctx, r.client, resource, "", manifests.ClusterName(r.name, r.namespace))
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		for _, entry := range c.Webhooks {
			if bundle := entry.ClientConfig.CABundle; len(bundle) > 0 && !published[string(bundle)] {
				published[string(bundle)] = true
				bundles = append(bundles, bundle)
			}
		}
		fmt.Fprintf(r.out, "read the published bundles of %s\n", c)
	}
	err = certificates.Revoke(ctx, certificates.Config{
		Client: r.client, Namespace: r.namespace, Secret: secret, Names: certificates.ServiceNames(r.name, r.namespace), Log: r.log,
	}, bundles...)
	if err != nil {
		return fmt.Errorf("revoke the authorities of webhooks: %w", err)
	}
	fmt.Fprintf(r.out, "revoked all authorities of the Secret %s/%s and of %d published bundles, and made a new authority\n"+
		"The replicas that run take the new authority, and publish its bundle. Calls may fail until then.\n", r.namespace, secret, len(bundles))
	return nil
}
