package webhook

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// conflicts finds the webhooks of others that are called beside those of an installation.
type conflicts struct {
	manifests.Installation
	client *kube.Client
	// webhooks are the names of the webhooks of the program. Among foreign are those about kinds of others. Other programs
	// can have the same names for such kinds.
	webhooks, foreign []string
	// watched are the namespaces that the program watches. None means all.
	watched []string
	// printNote gets a line for each webhook that is found.
	printNote func(string)
}

// search prints the webhook configurations of others that have a webhook of the program for the same namespaces.
func (c *conflicts) search(ctx context.Context) error {
	for _, r := range manifests.WebhookConfigurationResources() {
		all, err := clusterread.List(ctx, c.client, wire.Stream{Resource: r}, func(o *clusterread.Object) bool {
			return o.Metadata.Name != manifests.ClusterName(c.Name, c.Namespace)
		})
		if kube.IsForbidden(err) {
			c.printNote(fmt.Sprintf("%s are not checked: %v", r, err))
			continue
		}
		if err != nil {
			return err
		}
		for _, o := range all {
			for _, w := range o.Webhooks {
				isOfProgram := o.Metadata.Labels[manifests.LabelName] == c.Program
				if (isOfProgram || !slices.Contains(c.foreign, w.Name)) &&
					slices.Contains(c.webhooks, w.Name) && c.sharesNamespaces(w) {
					c.printNote(fmt.Sprintf("%s of %s has the webhook %s too, so the API server calls both: give each installation namespaces of its own with --watch-namespace, or remove the other one",
						o, ownerOf(o), w.Name))
				}
			}
		}
	}
	return nil
}

// ownerOf returns who has a webhook configuration.
func ownerOf(o *clusterread.Object) string {
	if labels := o.Metadata.Labels; labels[manifests.LabelNamespace] != "" {
		return fmt.Sprintf("the installation %s in the namespace %s",
			labels[manifests.LabelInstance], labels[manifests.LabelNamespace])
	}
	return "somebody else"
}

// sharesNamespaces reports whether a webhook is called for a namespace that the program watches.
func (c *conflicts) sharesNamespaces(w clusterread.Webhook) bool {
	for _, e := range w.NamespaceSelector.MatchExpressions {
		if e.Key == "kubernetes.io/metadata.name" && e.Operator == metav1.LabelSelectorOpIn && len(c.watched) > 0 {
			return slices.ContainsFunc(c.watched, func(name string) bool { return slices.Contains(e.Values, name) })
		}
	}
	return true
}
