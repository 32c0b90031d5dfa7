package uninstall

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/lease"
	"github.com/yare-go/yare/operator/internal/clusterread"
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
	l, exists, err := clusterread.Find(ctx, c.client, lease.Resource(),
		valueOf(f.LeaseNamespace, "lease-namespace", f.Namespace),
		valueOf(f.LeaseName, "lease-name", f.Program))
	if err != nil || !exists {
		return err
	}
	if c.isDryRun && f.deployment.Metadata.UID != "" {
		fmt.Fprintf(c.out, "would delete %s, unless another process renews it after the end of the Pods\n", l)
		return nil
	}
	isRenewed, err := isRenewed(ctx, c, l)
	if err != nil {
		return err
	}
	if isRenewed {
		fmt.Fprintf(c.out, "kept %s: somebody has renewed it meanwhile, so another process leads by it\n", l)
		return nil
	}
	return c.remove(ctx, l)
}

const (
	// usualHoldTime is how long a Lease is held whose record has no duration.
	usualHoldTime = 15 * time.Second
	// maxHoldTime bounds the duration in a record, which may be a mistake.
	maxHoldTime = 10 * time.Minute
)

// isRenewed reports whether a process renews l, or takes it over, within the time that its record is held. It decides
// by the changes that it observes, as electors do: the clock of a holder may be hours behind. The Pods of the program
// have ended before.
func isRenewed(ctx context.Context, c *cluster, l *clusterread.Object) (bool, error) {
	holdTime := min(time.Duration(l.Spec.LeaseDurationSeconds)*time.Second, maxHoldTime)
	if holdTime <= 0 {
		holdTime = usualHoldTime
	}
	if l.Spec.HolderIdentity != "" {
		fmt.Fprintf(c.out, "waiting %s to see whether %s still renews %s\n", holdTime, l.Spec.HolderIdentity, l)
	}
	for began := time.Now(); l.Spec.HolderIdentity != "" && time.Since(began) <= holdTime; {
		if err := clock.SleepReal(ctx, lookPeriod); err != nil {
			return false, fmt.Errorf("wait for a renewal of %s: %w", l, err)
		}
		now, exists, err := clusterread.Find(ctx, c.client, l.Resource, l.Metadata.Namespace, l.Metadata.Name)
		if err != nil || !exists {
			return false, err
		}
		if now.Spec.HolderIdentity == "" {
			return false, nil // its holder has released it
		}
		if now.Spec.HolderIdentity != l.Spec.HolderIdentity || !now.Spec.RenewTime.Equal(&l.Spec.RenewTime) {
			return true, nil
		}
	}
	return false, nil
}
