package uninstall

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/clusterread"
)

// cluster reads and deletes objects of all kinds.
type cluster struct {
	client *kube.Client
	// out gets a line for each object that is removed.
	out io.Writer
	// isDryRun is true if remove only writes what it would remove.
	isDryRun bool
	// limit is how long a wait may take.
	limit time.Duration
	// resources holds what the server serves. Without discoveryErr, these are all its resources.
	resources    []wire.Resource
	discoveryErr error
}

const (
	// lookPeriod is the time between two looks at what is being deleted.
	lookPeriod = 500 * time.Millisecond
	// staleLooks is how many looks the discovery of a server may be behind the end of a definition.
	staleLooks = 20
	// reportLooks is how many looks pass between two reports of a wait.
	reportLooks = 20
)

// servedKinds returns kinds in the versions that the server serves, and leaves out repetitions and the kinds that it
// does not serve. It returns an error if the server does not answer whether it serves a kind.
func (c *cluster) servedKinds(ctx context.Context, kinds []wire.Resource) (served []wire.Resource, err error) {
	for _, r := range kinds {
		if i := indexOf(c.resources, r); i >= 0 {
			if indexOf(served, r) < 0 {
				served = append(served, c.resources[i])
			}
		} else if c.discoveryErr != nil {
			// The group of the kind may be one of those that have answered.
			found, err := wire.Discover(ctx, c.client, r.GroupVersion())
			if err != nil {
				return nil, err
			}
			if i := indexOf(found, r); i >= 0 && indexOf(served, r) < 0 {
				served = append(served, found[i]) // the group answers now
			}
		}
	}
	return served, nil
}

// indexOf returns the index of a resource in any version, or -1.
func indexOf(resources []wire.Resource, r wire.Resource) int {
	for i := range resources {
		if resources[i].GroupResource() == r.GroupResource() {
			return i
		}
	}
	return -1
}

// listKinds returns the objects of kinds in these namespaces, or in all namespaces if there are none, and
// the objects of kinds outside of namespaces. A keep that is not nil chooses among them. A kind that may not be listed
// is an error.
func (c *cluster) listKinds(
	ctx context.Context, kinds []wire.Resource, in []string, keep func(*clusterread.Object) bool,
) (all []*clusterread.Object, err error) {
	for _, r := range kinds {
		namespaces := in
		if r.ClusterScoped || len(in) == 0 {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			found, err := c.listKind(ctx, wire.Stream{Resource: r, Namespace: namespace, Representation: wire.MetadataOnly},
				keep)
			if err != nil {
				return nil, fmt.Errorf("it is not known which objects exist: %w", err)
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// listKind returns the objects of a stream. An answer 404 alone is no proof that there are none: the discovery must
// show that the kind is not served.
func (c *cluster) listKind(
	ctx context.Context, s wire.Stream, keep func(*clusterread.Object) bool,
) ([]*clusterread.Object, error) {
	for looks := 0; ; looks++ {
		found, err := clusterread.List(ctx, c.client, s, keep)
		if !kube.IsNoResource(err) || looks == staleLooks {
			return found, err
		}
		resources, err := wire.Discover(ctx, c.client, s.Resource.GroupVersion())
		if err == nil && indexOf(resources, s.Resource) < 0 {
			return nil, nil
		}
		if err := clock.SleepReal(ctx, lookPeriod); err != nil {
			return nil, err
		}
	}
}

// remove deletes an object, and waits until the object, and the Pods of a Deployment, are gone.
func (c *cluster) remove(ctx context.Context, o *clusterread.Object) error {
	if c.isDryRun {
		fmt.Fprintf(c.out, "would delete %s\n", o)
		return nil
	}
	policy := metav1.DeletePropagationBackground
	if o.Resource == clusterread.Deployments() {
		policy = metav1.DeletePropagationForeground
	}
	if err := c.requestDeletion(ctx, o, policy); err != nil {
		return err
	}
	began := time.Now()
	for looks := 0; ; looks++ {
		now, exists, err := clusterread.Find(ctx, c.client, o.Resource, o.Metadata.Namespace, o.Metadata.Name)
		switch {
		case err != nil:
			return err
		case !exists || now.Metadata.UID != o.Metadata.UID:
			fmt.Fprintf(c.out, "deleted %s\n", o)
			return nil
		case time.Since(began) > c.limit:
			return fmt.Errorf("%s is not gone after %s, and has the finalizers %v: find out who removes them, and run the command again, with a longer --timeout if that takes longer",
				o, c.limit, now.Metadata.Finalizers)
		case looks > 0 && looks%reportLooks == 0:
			fmt.Fprintf(c.out, "waiting for the end of %s, with the finalizers %v\n", o, now.Metadata.Finalizers)
		}
		if err := clock.SleepReal(ctx, lookPeriod); err != nil {
			return fmt.Errorf("wait for the end of %s: %w", o, err)
		}
	}
}

// removeAll removes objects: see [cluster.remove].
func (c *cluster) removeAll(ctx context.Context, objects []*clusterread.Object) error {
	for _, o := range objects {
		if err := c.remove(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// requestDeletion asks the server to delete exactly this object.
func (c *cluster) requestDeletion(ctx context.Context, o *clusterread.Object, policy metav1.DeletionPropagation) error {
	return c.write(ctx, &wire.Request{Verb: wire.VerbDelete, Preconditions: wire.Preconditions{UID: o.Metadata.UID}}, o,
		metav1.DeleteOptions{
			TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions:     &metav1.Preconditions{UID: &o.Metadata.UID},
			PropagationPolicy: &policy,
		})
}

// write sends a request for an object with this body. An object that does not exist is no error.
func (c *cluster) write(ctx context.Context, r *wire.Request, o *clusterread.Object, body any) (err error) {
	r.Resource, r.Namespace, r.Name = o.Resource, o.Metadata.Namespace, o.Metadata.Name
	if r.Body, err = kube.Marshal(body); err == nil {
		_, err = c.client.Do(ctx, r)
	}
	return kube.IgnoreNotFound(err)
}

// removeFinalizers removes finalizers from an object, and prints a line that begins with done. Other finalizers stay.
func (c *cluster) removeFinalizers(ctx context.Context, o *clusterread.Object, finalizers []string, done string) error {
	left := slices.DeleteFunc(slices.Clone(o.Metadata.Finalizers),
		func(name string) bool { return slices.Contains(finalizers, name) })
	err := clusterread.SetFinalizers(ctx, c.client, o, left)
	switch {
	case err == nil:
		fmt.Fprintf(c.out, "%s %s\n", done, o)
	case kube.IsConflict(err): // the object has changed: the next round sees how
		return nil
	}
	return err
}

// patchDefinition patches a CustomResourceDefinition and prints a line about that.
func (c *cluster) patchDefinition(
	ctx context.Context, definition *clusterread.Object, line string, patch ...kube.PatchOperation,
) error {
	if c.isDryRun {
		fmt.Fprintf(c.out, "without --dry-run: %s\n", line)
		return nil
	}
	patch = append([]kube.PatchOperation{kube.TestAt("/metadata/uid", definition.Metadata.UID)}, patch...)
	err := c.write(ctx, &wire.Request{Verb: wire.VerbPatch, ContentType: wire.ContentJSONPatch}, definition, patch)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, line)
	return nil
}
