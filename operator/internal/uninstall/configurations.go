package uninstall

import (
	"context"
	"slices"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/live"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// findConfigurations returns the webhook configurations of an installation: those with its labels, and those of its name
// that call its Service. An admin may have removed the labels. A configuration of the name with the labels of another
// installation is an error.
func findConfigurations(ctx context.Context, c *cluster, o *Options) (all []*live.Object, err error) {
	name := manifests.ClusterName(o.Name, o.Namespace)
	for _, r := range manifests.WebhookConfigurations() {
		found, err := live.List(ctx, c.client, wire.Stream{Resource: r, LabelSelector: o.Selector()}, nil)
		if err == nil && !slices.ContainsFunc(found, func(x *live.Object) bool { return x.Metadata.Name == name }) {
			var named *live.Object
			var exists bool
			named, exists, err = live.Find(ctx, c.client, r, "", name)
			if exists && o.isCalledBy(named) {
				err = o.CheckOwner(named)
				found = append(found, named)
			}
		}
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

// isCalledBy reports whether an entry of a webhook configuration calls the Service of the installation.
func (o *Options) isCalledBy(configuration *live.Object) bool {
	return slices.ContainsFunc(configuration.Webhooks, func(w live.Webhook) bool {
		s := w.ClientConfig.Service
		return s != nil && s.Namespace == o.Namespace && s.Name == o.Name
	})
}

// removeConfigurations removes the webhook configurations of the installation.
func removeConfigurations(ctx context.Context, c *cluster, o *Options) error {
	all, err := findConfigurations(ctx, c, o)
	for _, each := range all {
		if err == nil {
			err = c.remove(ctx, each)
		}
	}
	return err
}

// retireConfigurations removes the webhook configurations for good, before the Pods of d end: after its last Pod, a
// configuration would make the API server refuse all writes of its objects. While the program runs, its leader makes a
// configuration again that is missing. So the program loses its permissions outside of its namespace before.
func retireConfigurations(ctx context.Context, c *cluster, o *Options, d *live.Object) error {
	if d.Metadata.UID == "" || c.isDryRun { // in a dry run, they would be gone already
		return nil
	}
	all, err := findConfigurations(ctx, c, o)
	if err != nil || len(all) == 0 && !o.HasWebhooks {
		return err
	}
	i := slices.IndexFunc(c.resources, func(r wire.Resource) bool { return r.Plural == "clusterrolebindings" })
	if i >= 0 {
		binding, exists, err := live.Find(ctx, c.client, c.resources[i], "", manifests.ClusterName(o.Name, o.Namespace))
		if err == nil && exists {
			if err = o.CheckOwner(binding); err == nil {
				err = c.remove(ctx, binding)
			}
		}
		if err != nil {
			return err
		}
	}
	return removeConfigurations(ctx, c, o)
}

// removeWebhookSecret removes the Secret with the webhook authorities. The program makes it again without labels if
// somebody deletes it.
func removeWebhookSecret(ctx context.Context, c *cluster, o *Options) error {
	if !o.HasWebhooks {
		return nil
	}
	i := slices.IndexFunc(c.resources, func(r wire.Resource) bool { return r.Group == "" && r.Plural == "secrets" })
	if i < 0 {
		return nil
	}
	secret, exists, err := live.Find(ctx, c.client, c.resources[i], o.Namespace, manifests.WebhookSecretName(o.Name))
	if err != nil || !exists || o.CheckOwner(secret) != nil {
		return err
	}
	return c.remove(ctx, secret)
}
