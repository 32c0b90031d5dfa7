package uninstall

import (
	"context"
	"slices"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// findConfigurations returns the webhook configurations of the installation.
func findConfigurations(ctx context.Context, c *cluster, f *findings) (all []*clusterread.Object, err error) {
	for _, r := range manifests.WebhookConfigurationResources() {
		found, err := clusterread.List(ctx, c.client, wire.Stream{Resource: r}, f.ownsConfiguration)
		if kube.IsNoResource(err) || kube.IsForbidden(err) && !f.HasWebhooksOrConverters {
			continue // removeLabelled reports what the user may not list
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// removeConfigurations removes the webhook configurations of the installation. The program does not make them again.
func removeConfigurations(ctx context.Context, c *cluster, f *findings) error {
	all, err := findConfigurations(ctx, c, f)
	if err != nil {
		return err
	}
	return c.removeAll(ctx, all)
}

// removeWebhookSecret removes the Secret with the webhook authorities. If somebody deletes the Secret, the program
// makes it again without labels.
func removeWebhookSecret(ctx context.Context, c *cluster, f *findings) error {
	i := slices.IndexFunc(c.resources, func(r wire.Resource) bool { return r.Group == "" && r.Plural == "secrets" })
	if i < 0 || !f.HasWebhooksOrConverters {
		return nil
	}
	secret, exists, err := clusterread.Find(ctx, c.client, c.resources[i], f.Namespace,
		manifests.WebhookSecretName(f.Name))
	if err != nil || !exists || f.CheckOwner(secret) != nil {
		return err
	}
	return c.remove(ctx, secret)
}
