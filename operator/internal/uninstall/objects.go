package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/operator/internal/clusterread"
)

const (
	// readyLimit is how long the program may be without a ready replica while it cleans up.
	readyLimit = time.Minute
	// reportPeriod is the time between two reports while nothing changes.
	reportPeriod = 10 * time.Second
)

// removeObjects deletes the objects of the program's kinds, and waits for their cleanups.
func removeObjects(ctx context.Context, c *cluster, f *findings) error {
	objects := f.objects
	if len(objects) > 0 && f.DryRun {
		fmt.Fprintf(c.out, "would delete these objects, and wait for their cleanups:%s\n", clusterread.Counts(objects))
		return nil
	}
	readyAt, reportedAt, fewestAt, reported, fewest := time.Now(), time.Time{}, time.Now(), 0, len(objects)
	for len(objects) > 0 {
		if err := deleteObjects(ctx, c, f, objects); err != nil {
			return err
		}
		if len(objects) != reported || time.Since(reportedAt) > reportPeriod {
			fmt.Fprintln(c.out, progress(objects))
			reportedAt, reported = time.Now(), len(objects)
		}
		err := clock.SleepReal(ctx, lookPeriod)
		if err != nil {
			return fmt.Errorf("wait for the cleanups: %w", err)
		}
		if objects, err = c.listKinds(ctx, f.ownKinds, f.watched, f.isExclusive); err != nil {
			return err
		}
		d, err := findDeployment(ctx, c, &f.Installation)
		if err != nil {
			return err
		}
		if d.Status.ReadyReplicas > 0 {
			readyAt = time.Now()
		}
		if len(objects) < fewest {
			fewestAt, fewest = time.Now(), len(objects)
		}
		switch {
		case time.Since(readyAt) > readyLimit && slices.ContainsFunc(objects, f.mustCleanUp):
			return fmt.Errorf("no replica of %s is ready any more, so nobody cleans up after these objects:%s",
				d, clusterread.Counts(objects))
		case time.Since(fewestAt) > c.limit && len(objects) > 0:
			return fmt.Errorf("no cleanup has ended for %s: %s\nread the log of the program, and run the command again, with a longer --timeout if a cleanup takes longer", c.limit, progress(objects))
		}
	}
	return nil
}

// deleteObjects deletes the objects that are not being deleted. It removes the finalizers of the program
// from the others if nobody is to clean up.
func deleteObjects(ctx context.Context, c *cluster, f *findings, objects []*clusterread.Object) error {
	for _, x := range objects {
		var err error
		if x.Metadata.DeletionTimestamp == nil {
			err = c.requestDeletion(ctx, x, metav1.DeletePropagationBackground)
		} else if f.AbandonCleanup && x.HasFinalizer(f.Finalizers) {
			err = c.removeFinalizers(ctx, x, f.Finalizers, abandoned)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxBlocked is how many objects a report of the progress names.
const maxBlocked = 3

// progress returns a line about what is left, and what it waits for.
func progress(objects []*clusterread.Object) string {
	var blocked []string
	for _, o := range objects {
		if m := &o.Metadata; m.DeletionTimestamp != nil && len(m.Finalizers) > 0 && len(blocked) < maxBlocked {
			blocked = append(blocked, fmt.Sprintf("%s (for %s) has the finalizers %v", o,
				time.Since(m.DeletionTimestamp.Time).Round(time.Second), m.Finalizers))
		}
	}
	line := fmt.Sprintf("waiting for the end of %d objects", len(objects))
	if len(blocked) > 0 {
		line += ": " + strings.Join(blocked, "; ")
	}
	return line
}
