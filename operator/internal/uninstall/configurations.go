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
		if kube.IsNoResource(err) || kube.IsForbidden(err) && !slices.Contains(f.ResourcesBefore, r) {
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

// removeSecrets removes the Secrets of the program that may have no labels: if somebody deletes such a Secret, the
// program makes it again.
func removeSecrets(ctx context.Context, c *cluster, f *findings) error {
	i := slices.IndexFunc(c.resources, func(r wire.Resource) bool { return r.Group == "" && r.Plural == "secrets" })
	if i < 0 {
		return nil
	}
	for _, name := range f.SecretsAfter {
		secret, exists, err := clusterread.Find(ctx, c.client, c.resources[i], f.Namespace, name)
		if err == nil && exists && f.CheckOwner(secret) == nil {
			err = c.remove(ctx, secret)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
