package uninstall

import (
	"context"
	"errors"
	"fmt"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// removeLabelled removes the objects that have the labels of the installation. The Deployment has been removed.
func removeLabelled(ctx context.Context, c *cluster, f *findings) error {
	if c.discoveryErr != nil {
		fmt.Fprintf(c.out, "left the objects of some resources as they are: %v\n", c.discoveryErr)
	}
	refused := ""
	for _, r := range c.resources {
		if !clusterread.IsSearched(r) || r.Plural == "namespaces" || r.Plural == "customresourcedefinitions" {
			continue // definitions have a step of their own, and namespaces stay
		}
		objects, err := clusterread.List(ctx, c.client,
			wire.Stream{Resource: r, LabelSelector: f.Selector(), Representation: wire.MetadataOnly}, nil)
		switch {
		case kube.IsNoResource(err): // its definition has gone meanwhile
		case kube.IsForbidden(err):
			refused += " " + r.String()
		case err != nil:
			fmt.Fprintf(c.out, "left %s as they are: %v\n", r, err)
		}
		for _, each := range objects {
			// The labels of a Service are also those of its EndpointSlices, which go with it.
			if len(each.Metadata.OwnerReferences) > 0 || each.Metadata.UID == f.deployment.Metadata.UID {
				continue
			}
			if err := c.remove(ctx, each); err != nil {
				return err
			}
		}
	}
	if refused != "" {
		return errors.New("objects of the installation may be left, because the user may not list these resources:" + refused)
	}
	return nil
}

// showNamespace prints the command that deletes the Namespace. Only the user knows what else the Namespace holds.
func showNamespace(ctx context.Context, c *cluster, f *findings) error {
	namespace, exists, err := clusterread.Find(ctx, c.client, manifests.NamespaceResource(), "", f.Namespace)
	if exists {
		fmt.Fprintf(c.out, "kept namespaces %[1]s, in which others may have objects. This command deletes it with everything in it:\n  kubectl delete namespace %[1]s\n", namespace.Metadata.Name)
	}
	return err
}
