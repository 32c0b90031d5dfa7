package operator

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/internal/webhook/certificates"
)

// revokeWebhookAuthority runs the command [revokeCommand]. It replaces the authorities in the Secret of an installation
// by a new one, and revokes the replaced authorities and those of the published bundles.
func revokeWebhookAuthority(ctx context.Context, i invocation, line *commandLine) error {
	name, namespace, err := line.install.names(i.Name)
	if err != nil {
		return err
	}
	client, server, err := i.newAdminClient(line)
	if err != nil {
		return err
	}
	client = client.WithFieldManager(i.Name) // the program owns the fields of the Secret
	secret := manifests.WebhookSecretName(name)
	fmt.Fprintf(i.stdout, "revokes the authorities of webhooks in the Secret %s/%s of the cluster %s\n",
		namespace, secret, server)
	_, exists, err := clusterread.Find(ctx, client, certificates.Resource(), namespace, secret)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("there is no Secret %s/%s: give --namespace and --name-prefix of the installation. A program with --webhook-cert issues no certificates, so replace the Secret that is mounted there", namespace, secret)
	}
	bundles, err := publishedBundles(ctx, client, manifests.ClusterName(name, namespace), i.stdout)
	if err != nil {
		return err
	}
	err = certificates.Revoke(ctx, certificates.Config{
		Client: client, Namespace: namespace, Secret: secret, Names: certificates.ServiceNames(name, namespace),
		Log: slog.New(newLogHandler(i.stderr, line.verbose)),
	}, bundles...)
	if err != nil {
		return fmt.Errorf("revoke the authorities of webhooks: %w", err)
	}
	fmt.Fprintf(i.stdout, "revoked the authorities of the Secret and of %d published bundles, and made a new authority\n"+
		"the replicas that run present the new authority now, and publish its bundle. Calls may fail until then\n",
		len(bundles))
	return nil
}

// publishedBundles returns the different bundles in the webhook configurations of a name, and prints where they are.
func publishedBundles(
	ctx context.Context, client *kube.Client, name string, out io.Writer,
) (bundles [][]byte, err error) {
	isKnown := make(map[string]bool)
	for _, resource := range manifests.WebhookConfigurationResources() {
		c, exists, err := clusterread.Find(ctx, client, resource, "", name)
		if err != nil {
			return nil, err
		}
		if !exists {
			continue
		}
		for _, w := range c.Webhooks {
			if bundle := w.ClientConfig.CABundle; len(bundle) > 0 && !isKnown[string(bundle)] {
				isKnown[string(bundle)] = true
				bundles = append(bundles, bundle)
			}
		}
		fmt.Fprintf(out, "read the bundles of %s\n", c)
	}
	return bundles, nil
}
