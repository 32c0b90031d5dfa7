package uninstall

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// removeDefinitions removes the CustomResourceDefinitions of the program, unless somebody else needs
// them. The other installations are looked up anew, because one of them may have been installed or removed meanwhile.
func removeDefinitions(ctx context.Context, c *cluster, f *findings) error {
	others, err := otherDeployments(ctx, c, &f.Installation)
	if err != nil {
		return err
	}
	for _, r := range f.Kinds {
		definition, exists, err := clusterread.Find(ctx, c.client, manifests.DefinitionResource(), "", r.String())
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
			served, err := c.servedKinds(ctx, []wire.Resource{r})
			if err == nil { // the version that was preferred at the start may be served no more
				err = useStorageVersions(ctx, c, served)
			}
			if err != nil {
				return err
			}
			// In a dry run the objects that would be deleted do not count.
			objects, err := c.listKinds(ctx, served, nil,
				func(x *clusterread.Object) bool { return !f.DryRun || !f.isDeleted(x) })
			if err != nil {
				return err
			}
			if len(objects) > 0 {
				reason = "objects exist:" + clusterread.Counts(objects)
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
	r := wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		Plural:           "clusterroles", ClusterScoped: true,
	}
	for _, name := range manifests.UserRoleNames(definition) {
		role, exists, err := clusterread.Find(ctx, c.client, r, "", name)
		if exists && role.Metadata.Labels[manifests.LabelManagedBy] == manifests.ManagedBy {
			err = c.remove(ctx, role)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
