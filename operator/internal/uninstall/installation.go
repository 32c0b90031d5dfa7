package uninstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/live"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// removeLabelled removes the objects that have the labels of the installation. The Deployment has been removed.
func removeLabelled(ctx context.Context, c *cluster, f *findings) error {
	if c.discoveryErr != nil {
		fmt.Fprintf(c.out, "left the objects of some resources as they are: %v\n", c.discoveryErr)
	}
	refused := ""
	for _, r := range c.resources {
		if !live.IsSearched(r) || r.Plural == "namespaces" || r.Plural == "customresourcedefinitions" {
			continue // definitions have a step of their own, and namespaces stay
		}
		objects, err := live.List(ctx, c.client, wire.Stream{Resource: r, LabelSelector: f.Selector(), Representation: wire.MetadataOnly}, nil)
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

// removeLease removes the Lease of the program, unless somebody holds it. A program that ends releases its Lease, and
// a Lease of other programs may have the same name.
func removeLease(ctx context.Context, c *cluster, f *findings) error {
	valueOf := func(value, flag, usual string) string {
		if values := flagValues(f.deployment, flag); value == "" && len(values) > 0 {
			return values[len(values)-1]
		}
		return cmp.Or(value, usual)
	}
	l, exists, err := live.Find(ctx, c.client, lease.Resource(), valueOf(f.LeaseNamespace, "lease-namespace", f.Namespace), valueOf(f.LeaseName, "lease-name", f.Program))
	if err != nil || !exists {
		return err
	}
	if c.isDryRun && f.deployment.Metadata.UID != "" {
		fmt.Fprintf(c.out, "would delete %s, unless another process renews it after the end of the Pods\n", l)
		return nil
	}
	if l.Spec.HolderIdentity != "" && time.Since(l.Spec.RenewTime.Time) < maxRenewalAge {
		fmt.Fprintf(c.out, "kept %s: %s has renewed it within %s, so another process leads by it\n", l, l.Spec.HolderIdentity, maxRenewalAge)
		return nil
	}
	return c.remove(ctx, l)
}

// maxRenewalAge is how old the last renewal of a Lease may be for its holder to lead, by the clocks of both machines. The Pods of
// the program have ended before, so that only another process renews the Lease.
const maxRenewalAge = time.Minute

// removeDefinitions removes the CustomResourceDefinitions of the program, unless somebody else needs
// them. The other installations are looked up anew, because one of them may have been installed or removed meanwhile.
func removeDefinitions(ctx context.Context, c *cluster, f *findings) error {
	others, err := otherDeployments(ctx, c, &f.Installation)
	if err != nil {
		return err
	}
	for _, r := range f.Kinds {
		definition, exists, err := live.Find(ctx, c.client, manifests.DefinitionResource(), "", r.String())
		if err != nil {
			return err
		}
		if !exists {
			if len(others) == 0 {
				err = removeUserRoles(ctx, c, r.String())
			}
			if err != nil {
				return err
			}
			continue
		}
		reason := ""
		switch {
		case definition.Metadata.Labels[manifests.LabelManagedBy] != manifests.ManagedBy:
			reason = "it has not got the label of the command manifests, so somebody else applied it"
		case len(others) > 0:
			reason = "the program is also installed as " + others[0].String()
		default:
			served, err := c.served(ctx, []wire.Resource{r})
			if err == nil { // the version that was preferred at the start may be served no more
				err = useStorageVersions(ctx, c, served)
			}
			if err != nil {
				return err
			}
			// In a dry run the objects that would be deleted do not count.
			objects, err := c.listKinds(ctx, served, nil, func(x *live.Object) bool { return !f.DryRun || !f.isDeleted(x) })
			if err != nil {
				return err
			}
			if len(objects) > 0 {
				reason = "objects exist:" + live.Counts(objects)
			} else if len(served) == 0 {
				reason = "the server serves no version of it, so nobody knows whether objects exist"
			}
		}
		if reason != "" {
			fmt.Fprintf(c.out, "kept %s: %s\n", definition, reason)
			continue
		}
		if err := removeUserRoles(ctx, c, r.String()); err != nil {
			return err
		}
		if err := c.remove(ctx, definition); err != nil {
			return err
		}
	}
	return nil
}

// removeUserRoles removes the roles for the users of a definition that the command manifests has printed.
func removeUserRoles(ctx context.Context, c *cluster, definition string) error {
	r := wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, Plural: "clusterroles", ClusterScoped: true}
	for _, name := range manifests.UserRoleNames(definition) {
		role, exists, err := live.Find(ctx, c.client, r, "", name)
		if exists && role.Metadata.Labels[manifests.LabelManagedBy] == manifests.ManagedBy {
			err = c.remove(ctx, role)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// showNamespace prints the command that deletes the Namespace. Only the user knows what else the Namespace holds.
func showNamespace(ctx context.Context, c *cluster, f *findings) error {
	namespace, exists, err := live.Find(ctx, c.client, namespaces(), "", f.Namespace)
	if exists {
		fmt.Fprintf(c.out, "kept namespaces %[1]s, in which others may have objects. This command deletes it with everything in it:\n  kubectl delete namespace %[1]s\n", namespace.Metadata.Name)
	}
	return err
}

func namespaces() wire.Resource {
	return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces", ClusterScoped: true}
}
