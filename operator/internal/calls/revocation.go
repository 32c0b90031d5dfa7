package calls

import (
	"context"
	"fmt"
	"io"

	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// revokeCommand returns the command revoke-webhook-authority of a program.
func revokeCommand(p *feature.Program) feature.Command {
	return feature.Command{
		Name: "revoke-webhook-authority",
		Run:  func(ctx context.Context, run *feature.CommandRun) error { return revokeAuthorities(ctx, p.Name, run) },
		Help: "replace the CA of its webhooks at once, as after the theft of a key, in the\n" +
			"installation that --namespace and --name-prefix name. Calls may fail for seconds",
	}
}

// revokeAuthorities replaces the authorities in the Secret of an installation by a new one, and revokes the replaced
// authorities and those of the published bundles. program is the name of the program, which owns the fields of the
// Secret.
func revokeAuthorities(ctx context.Context, program string, run *feature.CommandRun) error {
	client := run.Client.WithFieldManager(program)
	secret := manifests.WebhookSecretName(run.Name)
	fmt.Fprintf(run.Out, "revokes the authorities of webhooks in the Secret %s/%s of the cluster %s\n",
		run.Namespace, secret, run.Server)
	_, exists, err := clusterread.Find(ctx, client, certificates.Resource(), run.Namespace, secret)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("there is no Secret %s/%s: give --namespace and --name-prefix of the installation. A program with --webhook-cert issues no certificates, so replace the Secret that is mounted there", run.Namespace, secret)
	}
	bundles, err := publishedBundles(ctx, client, manifests.ClusterName(run.Name, run.Namespace), run.Out)
	if err != nil {
		return err
	}
	err = certificates.Revoke(ctx, certificates.Config{
		Client: client, Namespace: run.Namespace, Secret: secret,
		Names: certificates.ServiceNames(run.Name, run.Namespace), Log: run.Log,
	}, bundles...)
	if err != nil {
		return fmt.Errorf("revoke the authorities of webhooks: %w", err)
	}
	fmt.Fprintf(run.Out, "revoked the authorities of the Secret and of %d published bundles, and made a new authority\n"+
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
