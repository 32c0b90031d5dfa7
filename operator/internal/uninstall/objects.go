package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// object is an object of any kind.
type object struct {
	resource kube.Resource
	// Metadata is not embedded, because that would add methods to the binary.
	Metadata metav1.ObjectMeta `json:"metadata"`
}

// String returns how messages name the object.
func (o object) String() string {
	if o.Metadata.Namespace == "" {
		return o.resource.String() + " " + o.Metadata.Name
	}
	return o.resource.String() + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
}

// hasFinalizer reports whether o has one of these finalizers.
func (o object) hasFinalizer(finalizers []string) bool {
	return slices.ContainsFunc(o.Metadata.Finalizers, func(name string) bool { return slices.Contains(finalizers, name) })
}

// countsOf returns lines with the numbers of objects of each kind in each namespace.
func countsOf(objects []object) string {
	type group struct{ resource, place string }
	counts := make(map[group]int)
	for _, o := range objects {
		g := group{o.resource.String(), "outside of namespaces"}
		if o.Metadata.Namespace != "" {
			g.place = "in namespace " + o.Metadata.Namespace
		}
		counts[g]++
	}
	var lines []string
	for g, n := range counts {
		lines = append(lines, fmt.Sprintf("\n  %s: %d %s", g.resource, n, g.place))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

const (
	// readyLimit is how long the program may be without a ready replica while it cleans up.
	readyLimit = time.Minute
	// reportPeriod is the time between two reports while nothing changes.
	reportPeriod = 10 * time.Second
)

// removeObjects deletes the objects of the program's kinds, and waits for their cleanups. Without
// DeleteObjects an object is an error.
func removeObjects(ctx context.Context, c cluster, d deployment, o Options) error {
	objects, err := c.listKinds(ctx, o.Kinds, o.Watched)
	if err != nil || len(objects) == 0 {
		return err
	}
	name := o.Namespace + "/" + o.Name
	mustCleanUp := func(x object) bool { return !o.AbandonCleanup && x.hasFinalizer(o.Finalizers) }
	switch {
	case !o.DeleteObjects:
		return fmt.Errorf("%w, because these objects exist:%s\n--delete-objects deletes them too", errStopped, countsOf(objects))
	case d.Metadata.UID == "" && len(o.Watched) == 0:
		return fmt.Errorf("%w: the Deployment %s does not exist, so nobody knows which namespaces the program watched: name them with --watch-namespace. These objects exist:%s",
			errStopped, name, countsOf(objects))
	case d.Status.ReadyReplicas == 0 && slices.ContainsFunc(objects, mustCleanUp):
		return fmt.Errorf("%w: no replica of the Deployment %s is ready, so nobody would clean up after these objects:%s\nmake the program run, or give --abandon-cleanup, which leaves behind what the objects have outside of the cluster",
			errStopped, name, countsOf(objects))
	case o.DryRun:
		fmt.Fprintf(c.out, "would delete these objects, and wait for their cleanups:%s\n", countsOf(objects))
		return nil
	}
	readyAt, reportedAt, reported := time.Now(), time.Time{}, 0
	for len(objects) > 0 {
		if err := deleteObjects(ctx, c, objects, o); err != nil {
			return err
		}
		if len(objects) != reported || time.Since(reportedAt) > reportPeriod {
			fmt.Fprintln(c.out, progress(objects))
			reportedAt, reported = time.Now(), len(objects)
		}
		if err := clock.SleepReal(ctx, period); err != nil {
			return fmt.Errorf("wait for the cleanups: %w", err)
		}
		if objects, err = c.listKinds(ctx, o.Kinds, o.Watched); err != nil {
			return err
		}
		d, err := findDeployment(ctx, c, o.Installation)
		switch {
		case err != nil:
			return err
		case d.Status.ReadyReplicas > 0:
			readyAt = time.Now()
		case time.Since(readyAt) > readyLimit && slices.ContainsFunc(objects, mustCleanUp):
			return fmt.Errorf("no replica of the Deployment %s is ready any more, so nobody cleans up after these objects:%s", name, countsOf(objects))
		}
	}
	return nil
}

// deleteObjects deletes the objects that are not being deleted. It removes the finalizers of the program
// from the others if nobody is to clean up.
func deleteObjects(ctx context.Context, c cluster, objects []object, o Options) error {
	for _, x := range objects {
		var err error
		if x.Metadata.DeletionTimestamp == nil {
			err = c.delete(ctx, x, metav1.DeletePropagationBackground)
		} else if o.AbandonCleanup && x.hasFinalizer(o.Finalizers) {
			err = removeFinalizers(ctx, c, x, o.Finalizers)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeFinalizers removes finalizers from an object. Other finalizers stay.
func removeFinalizers(ctx context.Context, c cluster, o object, finalizers []string) error {
	m := &o.Metadata
	left := slices.DeleteFunc(slices.Clone(m.Finalizers), func(name string) bool { return slices.Contains(finalizers, name) })
	body, err := kube.Marshal(map[string]any{"metadata": map[string]any{
		"uid": m.UID, "resourceVersion": m.ResourceVersion, "finalizers": left,
	}})
	if err == nil {
		_, err = c.client.Do(ctx, &kube.Request{
			Verb: kube.VerbPatch, Resource: o.resource, Namespace: m.Namespace, Name: m.Name,
			ContentType: kube.ContentMergePatch, Body: body,
			Preconditions: kube.Preconditions{UID: m.UID, ResourceVersion: m.ResourceVersion},
		})
	}
	switch {
	case err == nil:
		fmt.Fprintf(c.out, "abandoned the cleanup of %s\n", o)
	case kube.IsConflict(err): // the object has changed: the next round sees how
		err = nil
	}
	return kube.IgnoreNotFound(err)
}

// mostBlocked is how many objects a report of the progress names.
const mostBlocked = 3

// progress returns a line about what is left, and what it waits for.
func progress(objects []object) string {
	var blocked []string
	for _, o := range objects {
		if m := &o.Metadata; m.DeletionTimestamp != nil && len(m.Finalizers) > 0 && len(blocked) < mostBlocked {
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
