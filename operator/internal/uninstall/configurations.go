package uninstall

import (
	"context"
	"slices"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/live"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// findConfigurations returns the webhook configurations of the installation.
func findConfigurations(ctx context.Context, c *cluster, o *Options) (all []*live.Object, err error) {
	for _, r := range manifests.WebhookConfigurations() {
		found, err := live.List(ctx, c.client, wire.Stream{Resource: r}, o.ownsConfiguration)
		if kube.IsNoResource(err) || kube.IsForbidden(err) && !o.HasWebhooks {
			continue // removeLabelled reports what the user may not list
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// removeConfigurations removes the webhook configurations of the installation.
func removeConfigurations(ctx context.Context, c *cluster, o *Options) error {
	all, err := findConfigurations(ctx, c, o)
	if err != nil {
		return err
	}
	return c.removeAll(ctx, all)
}

// retireConfigurations removes the webhook configurations for good, before the Pods of d end: after its last Pod, a
// configuration would make the API server refuse all writes of its objects. While the program runs, its leader makes a
// configuration again that is missing. So the program loses its permissions outside of its namespace before.
func retireConfigurations(ctx context.Context, c *cluster, o *Options, d *live.Object) error {
	if d.Metadata.UID == "" || !o.HasWebhooks || c.isDryRun {
		return nil // in a dry run, other steps name these objects
	}
	for _, r := range c.resources {
		if r.Plural != "clusterrolebindings" {
			continue
		}
		bindings, err := live.List(ctx, c.client, wire.Stream{Resource: r, LabelSelector: o.Selector()}, nil)
		if err == nil {
			err = c.removeAll(ctx, bindings)
		}
		if err != nil {
			return err
		}
	}
	return removeConfigurations(ctx, c, o)
}

// removeWebhookSecret removes the Secret with the webhook authorities. If somebody deletes the Secret, the program makes
// it again without labels.
func removeWebhookSecret(ctx context.Context, c *cluster, o *Options) error {
	i := slices.IndexFunc(c.resources, func(r wire.Resource) bool { return r.Group == "" && r.Plural == "secrets" })
	if i < 0 || !o.HasWebhooks {
		return nil
	}
	secret, exists, err := live.Find(ctx, c.client, c.resources[i], o.Namespace, manifests.WebhookSecretName(o.Name))
	if err != nil || !exists || o.CheckOwner(secret) != nil {
		return err
	}
	return c.remove(ctx, secret)
}
