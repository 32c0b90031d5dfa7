package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
	"github.com/yare-go/yare/operator/internal/manifests"
)

// objectsToRelease returns the objects that the command does not delete and that have finalizers of the program. Nobody
// removes these finalizers after the end of the program, unless another installation watches the objects. So the
// objects could never be deleted. The other installations are looked up anew, because one of them may have been
// installed or removed meanwhile.
func objectsToRelease(ctx context.Context, c *cluster, f *findings) ([]*clusterread.Object, error) {
	others, err := otherDeployments(ctx, c, &f.Installation)
	if err != nil || len(f.Finalizers) == 0 {
		return nil, err
	}
	return c.listKinds(ctx, f.reconciled, nil, func(x *clusterread.Object) bool {
		return x.HasFinalizer(f.Finalizers) && !f.isDeleted(x) &&
			!slices.ContainsFunc(others, func(d *clusterread.Object) bool { return watches(d, x) })
	})
}

// checkFinalizers returns an error if finalizers would be left that nobody removes, unless the command removes them.
func checkFinalizers(ctx context.Context, c *cluster, f *findings) error {
	objects, err := objectsToRelease(ctx, c, f)
	if err == nil && len(objects) > 0 && !f.RemoveFinalizers {
		err = fmt.Errorf("without the program nobody could delete these objects, which have its finalizers:%s\n--remove-finalizers removes the finalizers %v from them, and leaves behind what the objects have outside of the cluster",
			clusterread.Counts(objects), f.Finalizers)
	}
	return err
}

// removeFinalizers removes the finalizers of the program from the objects of objectsToRelease, if the user wants that.
func removeFinalizers(ctx context.Context, c *cluster, f *findings) error {
	if !f.RemoveFinalizers {
		return nil
	}
	for began := time.Now(); ; {
		objects, err := objectsToRelease(ctx, c, f)
		if err != nil || len(objects) == 0 {
			return err
		}
		if f.DryRun {
			fmt.Fprintf(c.out, "would remove the finalizers of the program from these objects:%s\n", clusterread.Counts(objects))
			return nil
		}
		if time.Since(began) > c.limit {
			return errors.New(
				"somebody adds the finalizers of the program again: another process of the program runs, so end it first." +
					clusterread.Counts(objects))
		}
		for _, x := range objects {
			if err := c.removeFinalizers(ctx, x, f.Finalizers, abandoned); err != nil {
				return err
			}
		}
		if err := clock.SleepReal(ctx, lookPeriod); err != nil {
			return fmt.Errorf("wait for the end of the finalizers: %w", err)
		}
	}
}

// abandoned begins the line about an object that has lost the finalizers of the program.
const abandoned = "abandoned the cleanup of"

// releaseRoles removes the finalizer of the program from its Roles and RoleBindings in watched namespaces, which has
// kept its permissions for the cleanups. No cleanup needs them any more.
func releaseRoles(ctx context.Context, c *cluster, f *findings) error {
	for _, r := range c.resources {
		if r.Group != "rbac.authorization.k8s.io" || r.ClusterScoped {
			continue
		}
		for began := time.Now(); ; {
			held, err := clusterread.List(ctx, c.client, wire.Stream{
				Resource: r, LabelSelector: f.Selector(), Representation: wire.MetadataOnly,
			}, func(o *clusterread.Object) bool {
				return o.HasFinalizer([]string{manifests.RoleFinalizer})
			})
			if err != nil {
				return err
			}
			if len(held) == 0 || c.isDryRun {
				break
			}
			if time.Since(began) > c.limit {
				return errors.New("somebody adds the finalizer " + manifests.RoleFinalizer +
					" again: another process of the program runs, so end it first." + clusterread.Counts(held))
			}
			for _, o := range held {
				if err := c.removeFinalizers(ctx, o, []string{manifests.RoleFinalizer}, "released"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
