package uninstall

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// cluster reads and deletes objects of all kinds, as metadata.
type cluster struct {
	client *kube.Client
	// out gets a line for each object that is removed.
	out io.Writer
	// isDryRun is true if remove only writes what it would remove.
	isDryRun bool
}

// period is the time between two looks at what is being deleted.
const period = 500 * time.Millisecond

// get returns the metadata of an object.
func (c cluster) get(ctx context.Context, r kube.Resource, namespace, name string) (*metadata, error) {
	response, err := c.client.Do(ctx, &kube.Request{
		Verb: kube.VerbGet, Resource: r, Namespace: namespace, Name: name, Representation: kube.MetadataOnly,
	})
	if err != nil {
		return nil, err
	}
	o := new(metadata)
	return o, kube.Unmarshal(response.Body, o)
}

// list returns the metadata of the objects of a stream. A resource that the server does not serve or
// cannot list has no objects.
func (c cluster) list(ctx context.Context, s kube.Stream) (all []*metadata, err error) {
	s.Representation = kube.MetadataOnly
	for page, err := range s.Pages(ctx, c.client) {
		if e, ok := kube.AsError(err); ok && (kube.IsNoResource(err) || e.Code == 405) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			o := new(metadata)
			if err := kube.Unmarshal(item, o); err != nil {
				return nil, fmt.Errorf("decode the metadata of an object of %s: %w", s, err)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// listKinds returns the objects of kinds in these namespaces, or in all namespaces if there are none, and
// the objects of kinds outside of namespaces.
func (c cluster) listKinds(ctx context.Context, kinds []kube.Resource, in []string) ([]object, error) {
	var all []object
	for _, r := range kinds {
		namespaces := in
		if r.ClusterScoped || len(in) == 0 {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			found, err := c.list(ctx, kube.Stream{Resource: r, Namespace: namespace})
			if err != nil {
				return nil, err
			}
			for _, o := range found {
				all = append(all, object{r, o})
			}
		}
	}
	return all, nil
}

// remove deletes an object. It returns when the object, and the Pods of a Deployment, are gone.
func (c cluster) remove(ctx context.Context, r kube.Resource, o *metadata) error {
	name := nameOf(r, o)
	if c.isDryRun {
		fmt.Fprintf(c.out, "would delete %s\n", name)
		return nil
	}
	policy := metav1.DeletePropagationBackground
	if r == deployments() {
		policy = metav1.DeletePropagationForeground
	}
	if err := c.delete(ctx, r, o, policy); err != nil {
		return err
	}
	for looks := 0; ; looks++ {
		now, err := c.get(ctx, r, o.Namespace, o.Name)
		if isGone(err) || err == nil && now.UID != o.UID {
			break
		}
		if err != nil {
			return err
		}
		if looks > 0 && looks%20 == 0 {
			fmt.Fprintf(c.out, "waiting for the end of %s, with the finalizers %v\n", name, now.Finalizers)
		}
		if err := clock.SleepReal(ctx, period); err != nil {
			return fmt.Errorf("wait for the end of %s: %w", name, err)
		}
	}
	fmt.Fprintf(c.out, "deleted %s\n", name)
	return nil
}

// delete asks the server to delete exactly this object.
func (c cluster) delete(ctx context.Context, r kube.Resource, o *metadata, policy metav1.DeletionPropagation) error {
	body, err := kube.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{UID: &o.UID},
		PropagationPolicy: &policy,
	})
	if err == nil {
		_, err = c.client.Do(ctx, &kube.Request{
			Verb: kube.VerbDelete, Resource: r, Namespace: o.Namespace, Name: o.Name, Body: body,
			Preconditions: kube.Preconditions{UID: o.UID},
		})
	}
	return kube.IgnoreNotFound(err)
}

// isGone reports whether err means that an object or its whole resource does not exist.
func isGone(err error) bool { return kube.IsNotFound(err) || kube.IsNoResource(err) }

// ignoreGone returns nil if err means that an object does not exist, and err otherwise.
func ignoreGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// nameOf returns how messages name an object.
func nameOf(r kube.Resource, o *metadata) string {
	if o.Namespace == "" {
		return r.String() + " " + o.Name
	}
	return r.String() + " " + o.Namespace + "/" + o.Name
}
