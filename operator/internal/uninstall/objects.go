package uninstall

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// custom is an object of a kind that the program defines.
type custom struct {
	resource kube.Resource
	// Unlike an embedded field, object adds no methods to the binary.
	object *metadata
}

// objects returns the objects of the program's kinds in the namespaces that it watches, and those
// outside of namespaces.
func (u *uninstaller) objects(ctx context.Context, watched []string) ([]custom, error) {
	if len(watched) == 0 {
		watched = []string{""}
	}
	var all []custom
	for _, r := range u.Kinds {
		in := watched
		if r.ClusterScoped {
			in = []string{""}
		}
		for _, namespace := range in {
			objects, err := u.list(ctx, kube.Stream{Resource: r, Namespace: namespace})
			if err != nil {
				return nil, err
			}
			for _, o := range objects {
				all = append(all, custom{r, o})
			}
		}
	}
	return all, nil
}

// countsOf returns lines with the numbers of objects in each namespace.
func countsOf(objects []custom) string {
	counts := make(map[string]map[string]int)
	for _, o := range objects {
		name := o.resource.String()
		if counts[name] == nil {
			counts[name] = make(map[string]int)
		}
		counts[name][o.object.Namespace]++
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		var places []string
		for _, namespace := range slices.Sorted(maps.Keys(counts[name])) {
			place := "outside of namespaces"
			if namespace != "" {
				place = "in namespace " + namespace
			}
			places = append(places, fmt.Sprintf("%d %s", counts[name][namespace], place))
		}
		fmt.Fprintf(&b, "\n  %s: %s", name, strings.Join(places, ", "))
	}
	return b.String()
}

// readyLimit is how long the program may be without a ready replica while it cleans up.
const readyLimit = time.Minute

// reportPeriod is the time between two reports while nothing changes.
const reportPeriod = 10 * time.Second

// removeObjects deletes the objects of the program's kinds, and waits for their cleanups. Without
// DeleteObjects an object is an error.
func (u *uninstaller) removeObjects(ctx context.Context, d *deployment) error {
	objects, err := u.objects(ctx, u.Watched)
	if err != nil || len(objects) == 0 {
		return err
	}
	switch {
	case !u.DeleteObjects:
		return fmt.Errorf("%w, because these objects exist:%s\n--delete-objects deletes them too", errStopped, countsOf(objects))
	case d == nil && len(u.Watched) == 0:
		return fmt.Errorf("%w: the Deployment %s/%s does not exist, so nobody knows which namespaces the program watched: name them with --watch-namespace. These objects exist:%s",
			errStopped, u.Namespace, u.Name, countsOf(objects))
	case !u.AbandonCleanup && (d == nil || d.Status.ReadyReplicas == 0) && slices.ContainsFunc(objects, u.needsCleanup):
		return fmt.Errorf("%w: no replica of the Deployment %s/%s is ready, so nobody would clean up after these objects:%s\nmake the program run, or give --abandon-cleanup, which leaves behind what the objects have outside of the cluster",
			errStopped, u.Namespace, u.Name, countsOf(objects))
	case u.DryRun:
		fmt.Fprintf(u.Out, "would delete these objects, and wait for their cleanups:%s\n", countsOf(objects))
		return nil
	}
	ready, reported, last := time.Now(), time.Time{}, 0
	for len(objects) > 0 {
		if err := u.advance(ctx, objects); err != nil {
			return err
		}
		if len(objects) != last || time.Since(reported) > reportPeriod {
			fmt.Fprintln(u.Out, progress(objects))
			last, reported = len(objects), time.Now()
		}
		if err := clock.SleepReal(ctx, period); err != nil {
			return fmt.Errorf("wait for the cleanups: %w", err)
		}
		if objects, err = u.objects(ctx, u.Watched); err != nil {
			return err
		}
		d, err := u.deployment(ctx)
		switch {
		case err != nil:
			return err
		case d != nil && d.Status.ReadyReplicas > 0:
			ready = time.Now()
		case !u.AbandonCleanup && time.Since(ready) > readyLimit && slices.ContainsFunc(objects, u.needsCleanup):
			return fmt.Errorf("no replica of the Deployment %s/%s is ready any more, so nobody cleans up after these objects:%s", u.Namespace, u.Name, countsOf(objects))
		}
	}
	return nil
}

// needsCleanup reports whether the program has a cleanup to do for an object.
func (u *uninstaller) needsCleanup(o custom) bool {
	return slices.ContainsFunc(o.object.Finalizers, func(name string) bool { return slices.Contains(u.Finalizers, name) })
}

// advance deletes the objects that are not being deleted, and removes the finalizers of the program
// if nobody is to clean up.
func (u *uninstaller) advance(ctx context.Context, objects []custom) error {
	for _, o := range objects {
		if o.object.DeletionTimestamp == nil {
			if err := u.delete(ctx, o.resource, o.object, metav1.DeletePropagationBackground); err != nil {
				return err
			}
		} else if u.AbandonCleanup && u.needsCleanup(o) {
			if err := u.removeFinalizers(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeFinalizers removes the finalizers of the program from an object. Other finalizers stay.
func (u *uninstaller) removeFinalizers(ctx context.Context, o custom) error {
	left := slices.DeleteFunc(slices.Clone(o.object.Finalizers), func(name string) bool { return slices.Contains(u.Finalizers, name) })
	body, err := kube.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.object.UID, "resourceVersion": o.object.ResourceVersion, "finalizers": left,
	}})
	if err == nil {
		_, err = u.client.Do(ctx, &kube.Request{
			Verb: kube.VerbPatch, Resource: o.resource, Namespace: o.object.Namespace, Name: o.object.Name,
			ContentType: kube.ContentMergePatch, Body: body,
			Preconditions: kube.Preconditions{UID: o.object.UID, ResourceVersion: o.object.ResourceVersion},
		})
	}
	switch {
	case err == nil:
		fmt.Fprintf(u.Out, "abandoned the cleanup of %s\n", nameOf(o.resource, o.object))
	case kube.IsConflict(err): // it has changed: the next round sees how
		err = nil
	}
	return kube.IgnoreNotFound(err)
}

// mostBlocked is how many objects a report of the progress names.
const mostBlocked = 3

// progress returns a line about what is left, and what it waits for.
func progress(objects []custom) string {
	var blocked []string
	for _, o := range objects {
		if o.object.DeletionTimestamp != nil && len(o.object.Finalizers) > 0 && len(blocked) < mostBlocked {
			blocked = append(blocked, fmt.Sprintf("%s (for %s) has the finalizers %v", nameOf(o.resource, o.object),
				time.Since(o.object.DeletionTimestamp.Time).Round(time.Second), o.object.Finalizers))
		}
	}
	line := fmt.Sprintf("waiting for the end of %d objects", len(objects))
	if len(blocked) > 0 {
		line += ": " + strings.Join(blocked, "; ")
	}
	return line
}
