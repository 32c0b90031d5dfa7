package uninstall

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/operator/internal/live"
)

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
